"""Whether what reviewers said is enough: a pure decision over facts.

An approval counts if it names the very digests that the version has now (files, report, base revision), is not older
than the policy lets it be, and comes from somebody whom the policy lets approve and who may still do so. The uploader's
never counts. Breaking the glass stands in for everybody else, but for the same digests alone.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from registry.states import Role

# Roles that a policy may name. Uploaders, viewers and auditors are kept apart from deciding.
APPROVER_ROLES: Final = frozenset({Role.REVIEWER, Role.RELEASE_MANAGER, Role.OPERATOR})


@dataclass(frozen=True, slots=True)
class Subject:
    """What is approved, by digests (hex): the files, the validation report, the base model revision."""

    files: str
    report: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A tenant's policy.

    Attributes:
        required: how many different people have to approve.
        roles: whoever has one of these may.
        only_people: if not empty, only these of them (e-mail addresses).
        required_people: each of these has to be among them.
        validity: how long an approval counts; None for ever.

    """

    required: int = 1
    roles: frozenset[Role] = frozenset({Role.REVIEWER})
    only_people: frozenset[str] = frozenset()
    required_people: frozenset[str] = frozenset()
    validity: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One approval as it was given, and what its reviewer is now: an inactive person has no roles."""

    person: str
    roles: frozenset[Role]
    subject: Subject
    at: datetime
    comment: str = ""
    break_glass: bool = False


class Void(StrEnum):
    """Why an approval does not count."""

    UPLOADER = "uploader"
    CHANGED = "changed"
    EXPIRED = "expired"
    NOT_AN_APPROVER = "not_an_approver"


@dataclass(frozen=True, slots=True)
class Case:
    """A version in review: what it is, who uploaded it (e-mail), and all approvals it was ever given."""

    subject: Subject
    uploader: str
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a case stands.

    Attributes:
        counted: the approvals that count, one of each person, oldest first.
        required: how many it takes.
        missing_people: who has to approve by name and has not.
        met: whether it is enough.

    """

    counted: tuple[Word, ...]
    required: int
    missing_people: frozenset[str]
    met: bool


def is_approver(rules: Rules, *, person: str, roles: frozenset[Role]) -> bool:
    """Whether the policy lets this person approve anything."""
    return bool(roles & rules.roles) and (not rules.only_people or person in rules.only_people)


def void_reason(rules: Rules, case: Case, word: Word, *, now: datetime) -> Void | None:
    """Why the word does not count, or None if it does."""
    if word.person == case.uploader:
        return Void.UPLOADER
    if word.subject != case.subject:
        return Void.CHANGED
    if word.break_glass:
        return None
    if not is_approver(rules, person=word.person, roles=word.roles):
        return Void.NOT_AN_APPROVER
    if rules.validity is not None and word.at + rules.validity <= now:
        return Void.EXPIRED
    return None


def judge(rules: Rules, case: Case, *, now: datetime) -> Standing:
    """Where the case stands under the rules."""
    first: dict[str, Word] = {}
    for word in sorted(case.words, key=lambda word: (not word.break_glass, word.at)):
        if void_reason(rules, case, word, now=now) is None:
            first.setdefault(word.person, word)
    counted = tuple(sorted(first.values(), key=lambda word: word.at))
    missing = rules.required_people - first.keys()
    glass_is_broken = any(word.break_glass for word in counted)
    return Standing(
        counted=counted,
        required=max(rules.required, len(rules.required_people)),
        missing_people=missing,
        met=glass_is_broken or (len(counted) >= rules.required and not missing),
    )


def stands(rules: Rules, case: Case, *, person: str, now: datetime) -> bool:
    """Whether an approval of this person counts already."""
    return any(word.person == person for word in judge(rules, case, now=now).counted)
