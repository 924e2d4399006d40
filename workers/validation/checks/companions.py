"""Check "companions": tokenizer files, templates and embeddings that ride along. Engines serve the base's own."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Final

from registry.base_models import strict_json
from registry.base_models.description import (
    TEMPLATE_FILE,
    TOKENIZER_FILES,
    inline_template_digest,
    tokenizer_digest,
)
from workers.validation.kinds import ADDED_TOKENS_FILE, NEW_EMBEDDINGS_FILE
from workers.validation.listing import read_small
from workers.validation.report import Check, Verdict, finding, several
from workers.validation.subject import Subject

NAME: Final = "companions"
_TOKENIZER: Final = "tokenizer.json"
_TOKENIZER_CONFIG: Final = "tokenizer_config.json"
_ADDED_TOKENS: Final = re.compile(r'"added_tokens"\s*:\s*')
_MAX_ADDED_TOKENS: Final = 2 << 20
_INDEX: Final = re.compile(r"\d{1,18}", re.ASCII)
_MAX_TOKENIZER_CONFIG: Final = 4 << 20


def check(subject: Subject) -> Iterator[Check]:
    """Refuse what only works with a larger vocabulary; warn of what will not be used."""
    yield from _new_embeddings(subject)
    yield from _added_tokens(subject)
    yield from _tokenizer(subject)
    yield from _template(subject)


def _new_embeddings(subject: Subject) -> Iterator[Check]:
    if NEW_EMBEDDINGS_FILE in subject.listing.files:
        message = (
            f"{NEW_EMBEDDINGS_FILE} holds embeddings of new tokens, which engines drop in silence: train without new "
            "tokens, or merge them into a base model of its own"
        )
        yield finding(NAME, Verdict.FAIL, "new_embeddings", message, path=NEW_EMBEDDINGS_FILE)


def _added_tokens(subject: Subject) -> Iterator[Check]:
    _, fault = _json_object(subject, ADDED_TOKENS_FILE, subject.limits.max_config_bytes)
    if fault:
        message = f"{ADDED_TOKENS_FILE} can't be read: {fault}; export it again or leave it out"
        yield finding(NAME, Verdict.WARN, "added_tokens_unreadable", message)
    vocabulary = subject.base.vocab_size
    for path, beyond in tokens_beyond(subject).items():
        message = (
            f"{path} adds tokens beyond the base's vocabulary of {vocabulary:,}: {several(beyond)}. "
            "The served base can't read or write an added token: train without them"
        )
        yield finding(NAME, Verdict.FAIL, "added_tokens", message, path=path, tokens=beyond, vocab_size=vocabulary)


def tokens_beyond(subject: Subject) -> dict[str, list[str]]:
    """By file, the added tokens whose index the base's vocabulary doesn't have."""
    vocabulary = subject.base.vocab_size
    found = {
        path: [token for token, index in tokens if type(index) is not int or not 0 <= index < vocabulary]
        for path, tokens in _listed_tokens(subject)
    }
    return {path: beyond for path, beyond in found.items() if beyond}


def _listed_tokens(subject: Subject) -> Iterator[tuple[str, list[tuple[str, object]]]]:
    """The three places where a tokenizer notes what was added to it; texts and indices as they stand there."""
    tokens, _ = _json_object(subject, ADDED_TOKENS_FILE, subject.limits.max_config_bytes)
    yield ADDED_TOKENS_FILE, list(tokens.items())
    content, _ = _json_object(subject, _TOKENIZER_CONFIG, _MAX_TOKENIZER_CONFIG)
    decoder = content.get("added_tokens_decoder")
    known = decoder.items() if isinstance(decoder, dict) else ()
    yield _TOKENIZER_CONFIG, [(_text_of(token), int(key)) for key, token in known if _INDEX.fullmatch(key)]
    listed = [token for token in _first_tokens(subject) if isinstance(token, dict)]
    yield _TOKENIZER, [(_text_of(token), token.get("id")) for token in listed]


def _text_of(token: object) -> str:
    return str(token.get("content")) if isinstance(token, dict) else str(token)


def _first_tokens(subject: Subject) -> list[object]:
    """The list of added tokens, which stands before the vocabulary; the file is too large to be parsed for it."""
    if _TOKENIZER not in subject.digests:
        return []
    text = read_small(subject.folder, _TOKENIZER, _MAX_ADDED_TOKENS).decode(errors="replace")
    found = _ADDED_TOKENS.search(text)
    try:
        value = json.JSONDecoder().raw_decode(text, found.end())[0] if found else []
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _is_own(subject: Subject, name: str) -> bool:
    """Whether the base has the very same file."""
    if subject.base_folder is None or not (subject.base_folder / name).is_file():
        return False
    with (subject.base_folder / name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == subject.digests[name]


def _tokenizer(subject: Subject) -> Iterator[Check]:
    present = {name: subject.digests[name] for name in TOKENIZER_FILES if name in subject.digests}
    foreign = [] if tokenizer_digest(present) == subject.base.tokenizer_digest else present.keys() - {ADDED_TOKENS_FILE}
    if not all(_is_own(subject, name) for name in foreign):
        message = (
            f"{several(sorted(present))}: a tokenizer rides along that isn't the base's own; engines serve the base's "
            "tokenizer, so answers may differ from what was seen in training"
        )
        yield finding(NAME, Verdict.WARN, "tokenizer", message, paths=sorted(present))


def _template(subject: Subject) -> Iterator[Check]:
    content, fault = _json_object(subject, _TOKENIZER_CONFIG, _MAX_TOKENIZER_CONFIG)
    if fault:
        message = f"{_TOKENIZER_CONFIG} can't be read: {fault}; export it again or leave it out"
        yield finding(NAME, Verdict.WARN, "tokenizer_config_unreadable", message)
    own = subject.digests.get(TEMPLATE_FILE) or inline_template_digest(content)
    if own and own != subject.base.chat_template_digest:
        message = (
            "a chat template rides along that isn't the base's own; engines serve the base's template, so prompts will "
            "be formatted otherwise than in training"
        )
        yield finding(NAME, Verdict.WARN, "chat_template", message, sha256=own)


def _json_object(subject: Subject, path: str, limit: int) -> tuple[dict[str, object], str | None]:
    """The object in a file that was read before, and why it can't be had."""
    if path not in subject.digests:
        return {}, None
    if subject.listing.files[path] > limit:
        return {}, f"it is larger than {limit:,} bytes"
    try:
        content = strict_json.parse(read_small(subject.folder, path, limit))
    except strict_json.StrictJsonError as error:
        return {}, str(error)
    return (content, None) if isinstance(content, dict) else ({}, "it is not a JSON object")
