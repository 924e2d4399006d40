"""Releases: making, approving, steering and watching them, and how long rollbacks took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.decoding import decode
from client.errors import NotFound, WaitTimedOut
from client.i18n import _
from client.pages import iterate, read_all
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.refs import PairRef, VersionRef
    from client.transport import Transport

ENDED_STATES = frozenset({"promoted", "aborted", "rolled_back"})
_POLL_S = 1.0
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class ReleasedVersion:
    """A version of the alias's tenant."""

    adapter: str
    version: str
    version_id: str = ""

    def __str__(self) -> str:
        """Return `adapter@version`."""
        return f"{self.adapter}@{self.version}"


@dataclass(frozen=True, slots=True)
class UsedTemplate:
    """The edition of a template that a release was made from."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class ReleaseApproval:
    """One person's consent to the release with that digest."""

    reviewer: str
    digest: str = ""
    comment: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Rollback:
    """How long a rollback took; milliseconds are counted from the request for it.

    `strays` are requests that began after the change and were answered by `left` all the same; null times aren't known
    until `settled_at`.
    """

    alias: str
    left: ReleasedVersion
    tenant: str = ""
    release: int | None = None
    revision: int = 0
    asked_at: str = ""
    committed_at: str = ""
    commit_ms: float = 0.0
    last_answer_at: str | None = None
    last_answer_ms: float | None = None
    strays: int = 0
    settled_at: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """One attempt to move an alias from `stable` to `candidate`; `sentence` says what it waits for, or how it ended.

    `plan`, `approvals` and `rollbacks` are there where one release was asked for.
    """

    tenant: str
    alias: str
    number: int
    state: str
    stable: ReleasedVersion
    candidate: ReleasedVersion
    id: str = ""
    sentence: str = ""
    pause_kind: str | None = None
    step: int = 0
    step_kind: str = ""
    steps: int = 0
    revision: int = 0
    digest: str = ""
    template: UsedTemplate | None = None
    reason: str = ""
    approvals_needed: int = 0
    approvals_given: int = 0
    made_by: str = ""
    made_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    looked_at: str | None = None
    plan: dict[str, object] = field(default_factory=dict)
    approvals: tuple[ReleaseApproval, ...] = ()
    rollbacks: tuple[Rollback, ...] = ()

    @property
    def is_over(self) -> bool:
        """Say whether nothing moves it any more by itself."""
        return self.state in ENDED_STATES

    def __str__(self) -> str:
        """Return `tenant/alias release number`."""
        return _("{tenant}/{alias} release {number}").format(tenant=self.tenant, alias=self.alias, number=self.number)


@dataclass(frozen=True, slots=True)
class Interval:
    """What the data leave open of a difference; null: no bound yet."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """What the judge says of one metric; numbers are in `unit`, `difference` is canary less stable."""

    metric: str
    outcome: str
    sentence: str = ""
    tested: str = ""
    unit: str = ""
    holds: bool = False
    canary: float | None = None
    stable: float | None = None
    difference: float | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class JudgedRequests:
    """How many requests of each side a verdict is made of."""

    canary: int = 0
    stable: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of a step: pass, fail or inconclusive; and how much there was to judge by."""

    outcome: str
    sentence: str = ""
    metrics: tuple[MetricVerdict, ...] = ()
    slices: int = 0
    requests: JudgedRequests = field(default_factory=JudgedRequests)
    mirrored: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseStep:
    """One step of a release; `spec` is its section of the plan, `attempt` how often it was begun."""

    index: int
    kind: str
    state: str
    spec: dict[str, object] = field(default_factory=dict)
    attempt: int = 0
    started_at: str | None = None
    ended_at: str | None = None
    sentence: str = ""
    verdict: Verdict | None = None
    judged_at: str | None = None


class Releases:
    """Calls below `/tenants/{tenant}/aliases/{alias}/releases`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def make(
        self,
        alias: PairRef,
        candidate: VersionRef,
        *,
        template: str | None = None,
        plan_text: str | None = None,
        reason: str = "",
        expected_revision: int | None = None,
    ) -> Release:
        """Make a release of the alias to an approved version, by a template or by a plan (YAML) of its own.

        The same wish while such a release is active answers that one. With `expected_revision` (the alias's), it is
        refused if somebody moved the alias since.

        Raises:
            ValueError: alias and version belong to different tenants.

        """
        if alias.tenant != candidate.tenant:
            raise ValueError(alias.tenant, candidate.tenant)
        body: dict[str, object] = {"adapter": candidate.adapter, "version": candidate.version, "reason": reason}
        facts = {"template": template, "plan_text": plan_text, "expected_revision": expected_revision}
        body |= {name: value for name, value in facts.items() if value is not None}
        return decode(Release, self._transport.call("POST", _releases(alias), body=body))

    def all(self, tenant: str, *, filters: dict[str, str | int] | None = None) -> tuple[Release, ...]:
        """Return the tenant's releases, newest first; `filters` are the API's (alias, state, active, …)."""
        return read_all(Release, self._transport, path_of("tenants", tenant, "releases"), filters=filters)

    def newest(self, alias: PairRef) -> Release:
        """Return the alias's newest release as a list shows it: the active one if there is one.

        Raises:
            NotFound: it never had one.

        """
        filters: dict[str, str | int] = {"alias": alias.name, "limit": 1}
        path = path_of("tenants", alias.tenant, "releases")
        found = next(iterate(Release, self._transport, path, filters=filters), None)
        if found is None:
            message = _("{alias} has had no release yet.").format(alias=alias)
            raise NotFound(status=_NOT_FOUND, code="not_found", detail=message)
        return found

    def get(self, alias: PairRef, number: int) -> Release:
        """Return one release with its plan."""
        return decode(Release, self._transport.call("GET", _releases(alias, str(number))))

    def timeline(self, alias: PairRef, number: int) -> tuple[ReleaseStep, ...]:
        """Return the steps of a release with the judge's last verdicts."""
        return read_all(ReleaseStep, self._transport, _releases(alias, str(number), "timeline"))

    def approve(self, alias: PairRef, number: int, *, digest: str, comment: str = "") -> Release:
        """Consent to the release that has this digest; never one's own."""
        return self._told(alias, number, "approve", {"digest": digest, "comment": comment})

    def start(self, alias: PairRef, number: int, *, reason: str = "", expected_revision: int | None = None) -> Release:
        """Begin the first step."""
        return self._told(alias, number, "start", _why(reason, expected_revision))

    def pause(self, alias: PairRef, number: int, *, reason: str = "", expected_revision: int | None = None) -> Release:
        """Let no step end; requests go on being split as they are."""
        return self._told(alias, number, "pause", _why(reason, expected_revision))

    def resume(self, alias: PairRef, number: int, *, reason: str = "", expected_revision: int | None = None) -> Release:
        """Go on after a pause, with the same step or, at a gate, with the next."""
        return self._told(alias, number, "resume", _why(reason, expected_revision))

    def retry(self, alias: PairRef, number: int, *, reason: str = "", expected_revision: int | None = None) -> Release:
        """Begin the step that runs anew."""
        return self._told(alias, number, "retry", _why(reason, expected_revision))

    def promote(
        self, alias: PairRef, number: int, *, reason: str = "", expected_revision: int | None = None
    ) -> Release:
        """Skip what is left of the steps and move the alias to the candidate."""
        return self._told(alias, number, "promote", _why(reason, expected_revision))

    def abort(self, alias: PairRef, number: int, *, reason: str = "", expected_revision: int | None = None) -> Release:
        """End the release; the alias stays where it is."""
        return self._told(alias, number, "abort", _why(reason, expected_revision))

    def rollback(self, alias: PairRef, number: int, *, reason: str = "") -> Release:
        """Take the candidate out of service at once, in whatever state the release is; needs no approval."""
        return self._told(alias, number, "rollback", {"reason": reason})

    def rollbacks(self, alias: PairRef) -> tuple[Rollback, ...]:
        """Return how long every rollback of the alias took, newest first."""
        path = path_of("tenants", alias.tenant, "aliases", alias.name, "rollbacks")
        return read_all(Rollback, self._transport, path)

    def watch(
        self,
        alias: PairRef,
        number: int,
        *,
        timeout_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Release]:
        """Yield the release whenever what it says of itself has changed, the last time when it is over.

        Raises:
            WaitTimedOut: it isn't over after `timeout_s` seconds.

        """
        deadline = None if timeout_s is None else clock() + timeout_s
        said: tuple[object, ...] | None = None
        while True:
            release = self.get(alias, number)
            says = (release.state, release.step, release.sentence, release.approvals_given)
            if says != said:
                yield release
            if release.is_over:
                return
            said = says
            if deadline is not None and clock() + _POLL_S > deadline:
                message = _("{release} is still {state} after {seconds:g} s; it goes on without you.")
                raise WaitTimedOut(message.format(release=release, state=release.state, seconds=timeout_s))
            sleep(_POLL_S)

    def _told(self, alias: PairRef, number: int, verb: str, body: dict[str, object]) -> Release:
        return decode(Release, self._transport.call("POST", _releases(alias, str(number), verb), body=body))


def _why(reason: str, expected_revision: int | None) -> dict[str, object]:
    body: dict[str, object] = {"reason": reason}
    return body if expected_revision is None else {**body, "expected_revision": expected_revision}


def _releases(alias: PairRef, *segments: str) -> str:
    return path_of("tenants", alias.tenant, "aliases", alias.name, "releases", *segments)
