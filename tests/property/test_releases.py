"""Two people and a controller at once, each with a real connection: whatever they do, promises about aliases hold.

Most steps are two or three acts that set out at the same moment. Nobody knows in which order they come; who is too late
is refused with an error of ours, and nothing is ever in between.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from registry.errors import StaleState, WrongState
from registry.models import Version
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, VersionState
from releases.errors import ReleaseError
from releases.models import Alias, Release
from releases.selectors import lock_release
from releases.services.aliases import roll_back_alias, set_alias
from releases.services.releases.approve import approve_release
from releases.services.releases.make import make_release
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.steps import hold_release
from releases.services.releases.verbs import (
    abort_release,
    pause_release,
    promote_release,
    resume_release,
    retry_release,
    start_release,
)
from releases.services.splits import SplitWish, clear_split, set_split
from releases.states import RUNNING_STATES, PauseKind, ReleaseState
from tests.concurrency.racing import errors_in, race
from tests.concurrency.releases.standing import assert_all_stands
from tests.factories.registry import make_actor, make_adapter, make_member, make_version
from tests.factories.releases import point_alias, take_on

Act = Callable[[], Any]

PLAN = '{"approvals": 1, "canary": [{"percent": 10.0}, {"percent": 50.0, "gate": true}]}'
VERBS: dict[str, Callable[..., Release]] = {
    "start": start_release,
    "pause": pause_release,
    "resume": resume_release,
    "retry": retry_release,
    "promote": promote_release,
    "abort": abort_release,
    "roll back": roll_back_release,
}
WITHDRAWALS = {"revoke": revoke_version, "yank": yank_version}
# What may be refused: too late, too early, not any more. Everything else is a fault, a deadlock above all.
REFUSALS = (ReleaseError, StaleState, WrongState)

people = st.integers(0, 1)
which = st.integers(0, 3)
acts = st.one_of(
    st.tuples(st.sampled_from(["make", "move", "split"]), people, which),
    st.tuples(st.sampled_from(["approve", "start", "take on", "take on", *VERBS]), people, which),
    st.tuples(st.sampled_from(["take on", "hold", "fail", "promote", "promote"]), people, which),
    st.tuples(st.sampled_from(["clear", "roll back the alias", *WITHDRAWALS]), people, which),
)


class Releases(RuleBasedStateMachine):
    @initialize()
    def an_alias_was_moved_once(self) -> None:
        self.adapter = make_adapter()
        self.people = [make_member(self.adapter.tenant, *Role) for _number in range(2)]
        for _number in range(2):
            self.alias = point_alias(name="support", version=make_version(adapter=self.adapter))
        self.revision = self.alias.revision

    @rule(together=st.lists(acts, min_size=2, max_size=3))
    def act_at_once(self, together: list[tuple[str, int, int]]) -> None:
        versions = self._approved()
        self.alias = Alias.objects.select_related("tenant", "adapter", "version").get(pk=self.alias.pk)
        newest = Release.objects.select_related("alias__tenant").filter(alias=self.alias).order_by("-number").first()
        chosen = [self._act(name, by, versions[number], newest) for name, by, number in together]
        for error in errors_in(race(*chosen)):
            assert isinstance(error, REFUSALS), error

    @rule(by=people, number=which, steps=st.integers(1, 6))
    def a_release_gets_some_way(self, by: int, number: int, steps: int) -> None:
        """Alone, so that a search finds its way to late states."""
        version = self._approved()[number]
        try:
            release = self._make(by, version)
        except ReleaseError:
            return
        other = self.people[1 - by]
        if not release.approvals.exists() and release.made_by_id != other.person_id:
            approve_release(actor=other, release=release, digest=release.digest)
        try:
            start_release(actor=self.people[by], release=release)
        except ReleaseError:
            return
        for _step in range(steps):
            if take_on(release).state == ReleaseState.PAUSED:
                resume_release(actor=other, release=release)

    @invariant()
    def everything_stands(self) -> None:
        assert_all_stands(self.alias.pk)
        revision = Alias.objects.get(pk=self.alias.pk).revision
        assert revision >= self.revision
        self.revision = revision

    def _approved(self) -> list[Version]:
        rows = Version.objects.select_related("adapter__tenant").filter(adapter=self.adapter)
        found = list(rows.filter(state=VersionState.APPROVED.value).order_by("name"))
        found += [make_version(adapter=self.adapter) for _missing in range(4 - len(found))]
        return found[:4]

    def _make(self, by: int, version: Version) -> Release:
        return make_release(actor=self.people[by], alias=self.alias, candidate=version, plan_text=PLAN)

    def _act(self, name: str, by: int, version: Version, release: Release | None) -> Act:
        if release is not None and name in {"approve", "take on", "hold", "fail", *VERBS}:
            return self._act_on(release, name, by)
        actor, alias = self.people[by], self.alias
        if name in WITHDRAWALS:
            return lambda: WITHDRAWALS[name](actor=actor, version=version, reason="poisoned")
        names: dict[str, Any] = {
            "tenant": alias.tenant,
            "name": alias.name,
            "adapter": self.adapter,
            "version": version,
        }
        wish = SplitWish(candidate=version, basis_points=500)
        by_hand: dict[str, Act] = {
            "split": lambda: set_split(actor=actor, alias=alias, wish=wish),
            "clear": lambda: clear_split(actor=actor, alias=alias),
            "roll back the alias": lambda: roll_back_alias(actor=actor, alias=alias),
            "move": lambda: set_alias(actor=actor, **names),
        }
        return by_hand.get(name, lambda: self._make(by, version))

    def _act_on(self, release: Release, name: str, by: int) -> Act:
        if name in VERBS:
            return lambda: VERBS[name](actor=self.people[by], release=release)
        if name == "approve":
            return lambda: self._consent(release, by)
        if name == "fail":
            return lambda: roll_back_release(actor=make_actor(), release=release, reason="certainly worse")
        return lambda: _controlled(release, name)

    def _consent(self, release: Release, by: int) -> None:
        if release.made_by_id != self.people[by].person_id:
            approve_release(actor=self.people[by], release=release, digest=release.digest)


@transaction.atomic
def _controlled(release: Release, name: str) -> None:
    if name == "take on":
        take_on(release)
        return
    locked = lock_release(release.pk)
    if locked.state in RUNNING_STATES:
        hold_release(locked, actor=make_actor(), pause=PauseKind.HELD, sentence="Nobody can say.")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize("examples", [2, pytest.param(40, marks=[pytest.mark.e2e, pytest.mark.timeout(900)])])
def test_two_people_and_a_controller_at_once_break_no_promise(examples: int) -> None:
    run_state_machine_as_test(Releases, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None))
