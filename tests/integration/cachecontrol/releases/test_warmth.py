"""What releases ask of the nodes: candidates loaded, both versions kept, and what was rolled back gone."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.services.demand import bring_up
from cachecontrol.services.loads.attempts import Ask
from cachecontrol.services.planning.facts import read_pool
from cachecontrol.services.planning.plan import plan_pool, replan_pool
from cachecontrol.services.releases.cooling import cool
from cachecontrol.services.releases.warming import warm_up
from cachecontrol.services.residencies import warm_version
from cachecontrol.states import DemandState, Desired, ErrorClass, Outcome
from registry.models import BaseModelRevision, Version
from registry.states import VersionState
from releases.models import Alias, Release
from releases.ports import Warmth
from releases.services.releases.rollback import roll_back_release
from releases.services.releases.verbs import abort_release, promote_release, start_release
from releases.warmth import cooled_versions, kept_warm_versions
from tests.factories.cachecontrol import make_node, tell
from tests.factories.registry import make_actor, make_adapter, make_base_revision, make_version
from tests.factories.releases import SHORT_PLAN, begin_release, make_alias, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer", "store")]


@pytest.fixture
def base() -> BaseModelRevision:
    return make_base_revision()


@pytest.fixture
def stable(base: BaseModelRevision) -> Version:
    return make_version(adapter=make_adapter(base_model=base.base_model), base_revision=base)


@pytest.fixture
def candidate(stable: Version) -> Version:
    return make_version(adapter=stable.adapter, base_revision=stable.base_revision)


@pytest.fixture
def alias(stable: Version) -> Alias:
    return make_alias(version=stable)


@pytest.fixture
def ask(stable: Version, candidate: Version) -> Any:
    def warm(*, nodes: int | None = None, since: datetime | None = None) -> Warmth:
        since = since or timezone.now() - timedelta(hours=1)
        return warm_up(actor=make_actor(), version_id=candidate.pk, like=stable.pk, nodes=nodes, since=since)

    return warm


def load(node: Node, version: Version) -> Residency:
    warm_version(actor=make_actor(), node=node, version=version)
    return tell(node, version, Outcome.LOADED)


def wanted(version: Version) -> list[str]:
    found = Residency.objects.filter(version=version, desired=Desired.GPU.value)
    return sorted(found.values_list("node__name", flat=True))


class TestWarming:
    def test_it_goes_where_the_stable_version_is(
        self, base: Any, stable: Version, candidate: Version, ask: Any
    ) -> None:
        nodes = [make_node(base_revision=base, name=name) for name in ("n1", "n2", "n3")]
        load(nodes[1], stable)
        load(nodes[2], stable)
        assert ask() == Warmth(ready=0, wanted=2, note="")
        assert wanted(candidate) == ["n2", "n3"]
        tell(nodes[1], candidate, Outcome.LOADED)
        assert ask() == Warmth(ready=1, wanted=2, note="It is on its way to n3.")
        tell(nodes[2], candidate, Outcome.LOADED)
        assert ask() == Warmth(ready=2, wanted=2)
        assert wanted(candidate) == ["n2", "n3"]

    def test_it_is_on_one_node_at_least(self, base: Any, candidate: Version, ask: Any) -> None:
        make_node(base_revision=base, name="n1")
        assert ask().wanted == 1
        assert wanted(candidate) == ["n1"]

    def test_the_plan_may_want_more_nodes_than_hold_the_stable_version(
        self, base: Any, stable: Version, candidate: Version, ask: Any
    ) -> None:
        nodes = [make_node(base_revision=base, name=name) for name in ("n1", "n2")]
        load(nodes[0], stable)
        assert ask(nodes=2).wanted == 2
        assert wanted(candidate) == ["n1", "n2"]

    def test_more_nodes_than_there_are_is_trouble(self, base: Any, ask: Any) -> None:
        make_node(base_revision=base)
        assert "Only 1 nodes" in ask(nodes=2).trouble

    def test_no_node_that_serves_it_is_trouble(self, ask: Any) -> None:
        make_node()
        assert "No node serves" in ask().trouble

    def test_a_node_that_is_down_may_come_back(self, base: Any, stable: Version, ask: Any) -> None:
        node = make_node(base_revision=base, name="n1")
        load(node, stable)
        Node.objects.update(status="lost")
        found = ask()
        assert (found.ready, found.trouble) == (0, "")
        assert found.note

    def test_an_engine_that_is_not_well_is_not_ready(self, base: Any, candidate: Version, ask: Any) -> None:
        node = make_node(base_revision=base, name="n1")
        load(node, candidate)
        assert ask().ready == 1
        Node.objects.update(engine_healthy=False)
        assert ask() == Warmth(ready=0, wanted=1, note="It is on its way to n1.")

    def test_a_cordoned_node_keeps_what_it_has_and_gets_nothing(self, base: Any, candidate: Version, ask: Any) -> None:
        first = make_node(base_revision=base, name="n1")
        make_node(base_revision=base, name="n2")
        load(first, candidate)
        Node.objects.update(cordoned=True)
        assert ask().ready == 1
        assert "Only 1 nodes" in ask(nodes=2).trouble

    def test_a_full_engine_makes_room_or_says_why_not(self, base: Any, stable: Version, ask: Any) -> None:
        node = make_node(base_revision=base, name="n1", cpu_slots=1, gpu_slots=1)
        load(node, stable)
        assert ask().note.startswith("n1: ")

    def test_what_failed_for_good_is_tried_again_by_a_new_attempt_alone(
        self, base: Any, candidate: Version, ask: Any
    ) -> None:
        node = make_node(base_revision=base, name="n1")
        began = timezone.now()
        ask(since=began)
        tell(node, candidate, Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="bad weights")
        assert ask(since=began).trouble == "It can't be loaded on n1: bad weights"
        generation = Residency.objects.get().generation
        ask(since=began)
        assert Residency.objects.get().generation == generation
        assert ask(since=timezone.now()).trouble == ""
        assert Residency.objects.get().generation > generation

    def test_another_node_may_do_where_one_failed(self, base: Any, candidate: Version, ask: Any) -> None:
        first = make_node(base_revision=base, name="n1")
        ask()
        tell(first, candidate, Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="bad weights")
        make_node(base_revision=base, name="n2")
        assert ask().trouble == ""
        assert "n2" in wanted(candidate)

    def test_a_withdrawn_candidate_is_trouble(self, base: Any, stable: Version, ask: Any) -> None:
        make_node(base_revision=base)
        revoked = make_version(adapter=stable.adapter, state=VersionState.REVOKED, base_revision=base)
        found = warm_up(actor=make_actor(), version_id=revoked.pk, like=stable.pk, nodes=None, since=timezone.now())
        assert "revoked" in found.trouble


class TestKept:
    @pytest.fixture
    def release(self, alias: Alias, candidate: Version) -> Release:
        return begin_release(alias=alias, candidate=candidate, plan={**SHORT_PLAN, "keep_stable_warm_minutes": 30.0})

    def test_both_versions_from_the_start_on(self, release: Release, stable: Version, candidate: Version) -> None:
        assert kept_warm_versions(now=timezone.now()) == frozenset()
        start_release(actor=make_actor(), release=release)
        assert kept_warm_versions(now=timezone.now()) == {stable.pk, candidate.pk}

    def test_what_a_promotion_left_for_a_time(self, release: Release, stable: Version) -> None:
        start_release(actor=make_actor(), release=release)
        promote_release(actor=make_actor(), release=release)
        now = timezone.now()
        assert kept_warm_versions(now=now + timedelta(minutes=29)) == {stable.pk}
        assert kept_warm_versions(now=now + timedelta(minutes=31)) == frozenset()

    def test_nothing_of_a_release_that_was_given_up(self, release: Release) -> None:
        start_release(actor=make_actor(), release=release)
        abort_release(actor=make_actor(), release=release)
        assert kept_warm_versions(now=timezone.now()) == frozenset()

    def test_the_planner_keeps_every_copy(
        self, base: Any, release: Release, stable: Version, candidate: Version
    ) -> None:
        nodes = [make_node(base_revision=base, name=name) for name in ("n1", "n2")]
        for node in nodes:
            load(node, stable)
            load(node, candidate)
        start_release(actor=make_actor(), release=release)
        pool = read_pool(base.digest)
        assert pool is not None
        assert {version.version_id: version.min_replicas for version in pool.versions} == {
            stable.pk: 2,
            candidate.pk: 2,
        }
        plan_pool(base.digest)
        assert wanted(candidate) == wanted(stable) == ["n1", "n2"]

    def test_nobody_else_pushes_it_out(self, base: Any, release: Release, stable: Version) -> None:
        node = make_node(base_revision=base, name="n1", cpu_slots=1, gpu_slots=1)
        load(node, stable)
        Residency.objects.update(state_changed_at=timezone.now() - timedelta(days=1))
        start_release(actor=make_actor(), release=release)
        other = make_version(adapter=make_adapter(base_model=base.base_model), base_revision=base)
        assert bring_up(actor=make_actor(), version_id=other.pk, ask=Ask()).state is DemandState.NO_CAPACITY


class TestCooling:
    @pytest.fixture
    def release(self, base: Any, alias: Alias, candidate: Version) -> Release:
        load(make_node(base_revision=base, name="n1"), candidate)
        release = begin_release(alias=alias, candidate=candidate)
        return start_release(actor=make_actor(), release=release)

    def leave(self, release: Release) -> None:
        roll_back_release(actor=make_actor(), release=release, reason="it is worse")
        cool(actor=make_actor(), version_id=release.candidate_id, reason="it is worse")

    def test_what_was_rolled_back_leaves_its_nodes(self, release: Release, candidate: Version) -> None:
        self.leave(release)
        assert Residency.objects.get(version=candidate).desired == Desired.ABSENT
        assert list(Eviction.objects.values_list("reason", "to_tier")) == [("rollback", "remote")]
        self.leave(release)
        assert Eviction.objects.count() == 1

    def test_nothing_warms_it_again(self, base: Any, release: Release, candidate: Version) -> None:
        self.leave(release)
        assert bring_up(actor=make_actor(), version_id=candidate.pk, ask=Ask()).state is DemandState.REFUSED
        plan_pool(base.digest)
        assert wanted(candidate) == []

    def test_a_plan_from_before_the_rollback_does_not_bring_it_back(
        self, base: Any, release: Release, candidate: Version
    ) -> None:
        plan_pool(base.digest)
        self.leave(release)
        make_node(base_revision=base, name="n2")
        replan_pool(base.digest)
        assert wanted(candidate) == []

    def test_what_another_alias_points_to_stays(self, release: Release, candidate: Version) -> None:
        point_alias(name="another", version=candidate)
        self.leave(release)
        assert wanted(candidate) == ["n1"]

    def test_a_new_release_may_warm_it_again(self, release: Release, candidate: Version) -> None:
        self.leave(release)
        assert cooled_versions(versions=[candidate.pk]) == {candidate.pk}
        begin_release(alias=release.alias, candidate=candidate)
        assert cooled_versions(versions=[candidate.pk]) == frozenset()
