"""Check "companions": tokenizer files, templates and embeddings that ride along. Engines serve the base's own."""

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
_TOKENIZER_CONFIG: Final = "tokenizer_config.json"
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
    tokens, fault = _json_object(subject, ADDED_TOKENS_FILE, subject.limits.max_config_bytes)
    if fault:
        message = f"{ADDED_TOKENS_FILE} can't be read: {fault}; export it again or leave it out"
        yield finding(NAME, Verdict.WARN, "added_tokens_unreadable", message)
    vocabulary = subject.base.vocab_size
    beyond = [token for token, index in tokens.items() if type(index) is not int or not 0 <= index < vocabulary]
    if beyond:
        message = (
            f"{ADDED_TOKENS_FILE} adds tokens beyond the base's vocabulary of {vocabulary:,}: {several(beyond)}. "
            "The served base can't read or write an added token: train without them"
        )
        yield finding(NAME, Verdict.FAIL, "added_tokens", message, tokens=beyond, vocab_size=vocabulary)


def _tokenizer(subject: Subject) -> Iterator[Check]:
    present = {name: subject.digests[name] for name in TOKENIZER_FILES if name in subject.digests}
    if present.keys() - {ADDED_TOKENS_FILE} and tokenizer_digest(present) != subject.base.tokenizer_digest:
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
