"""Releases from their start to their end by what nodes report and gateways record, as the application's role."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import Node, Residency
from cachecontrol.states import Desired, Outcome
from deploy.embedded.postgres import APP
from registry.models import Version
from releases.models import AliasSplit, Release, ReleaseStep, Rollback
from releases.services.releases.verbs import start_release
from releases.states import ReleaseState, StepKind
from tests.factories.cachecontrol import make_node, tell
from tests.factories.registry import make_actor, make_version
from tests.factories.releases import begin_release, make_alias
from workers.tasks.releases import steer_releases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer", "store")]

PLAN: dict[str, Any] = {
    "approvals": 0,
    "shadow": None,
    "canary": [{"percent": 50.0, "min_minutes": 0.0, "min_samples": 300}],
    "judge": {"slice_s": 5.0},
}
SECONDS = 40
# Twenty requests a second of each side; of one in so many fails the candidate.
RECORDS = """
INSERT INTO gateway_request (at, request_id, tenant, alias, version_id, node, tier, status, error_kind, queue_ms,
                             load_ms, ttft_ms, total_ms, stream, side, engine_ms)
SELECT %(since)s + n * interval '50 milliseconds', %(side)s || n, %(tenant)s, %(alias)s, %(version)s, 'n1', 'gpu',
       CASE WHEN n %% %(every)s = 0 THEN 502 ELSE 200 END, CASE WHEN n %% %(every)s = 0 THEN 'engine_down' ELSE '' END,
       0, 0, 20 + n %% 50, 100 + n %% 200, true, %(side)s, 80 + n %% 100
FROM generate_series(1, %(number)s) n
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let so many seconds pass."""
    now, ahead = timezone.now, [0.0]
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(seconds=ahead[0]))

    def pass_time(seconds: float) -> None:
        ahead[0] += seconds

    return pass_time


@pytest.fixture
def candidate() -> Version:
    return make_version()


@pytest.fixture
def node(candidate: Version) -> Node:
    return make_node(base_revision=candidate.base_revision, name="n1")


@pytest.fixture
def release(candidate: Version, node: Node) -> Release:
    alias = make_alias(version=make_version(adapter=candidate.adapter, base_revision=candidate.base_revision))
    return start_release(actor=make_actor(), release=begin_release(alias=alias, candidate=candidate, plan=PLAN))


@pytest.fixture
def record(release: Release) -> Iterator[Callable[..., None]]:
    """Write records of requests that began after the canary did, as gateways do: with rights of their own."""
    owner = connection.copy()

    def write(*, fails_every: int = 10_000) -> None:
        canary = ReleaseStep.objects.get(release=release, kind=StepKind.CANARY.value)
        names = {"tenant": release.alias.tenant.name, "alias": release.alias.name, "since": canary.started_at}
        sides = {"canary": (release.candidate_id, fails_every), "stable": (release.stable_id, 10_000)}
        with owner.cursor() as cursor:
            for side, (version, every) in sides.items():
                facts: dict[str, Any] = {"side": side, "version": version, "every": every, "number": 20 * SECONDS}
                cursor.execute(RECORDS, {**names, **facts})

    yield write
    owner.close()


@pytest.fixture
def as_application(postgres: Any, release: Release, record: object) -> Iterator[None]:
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


@pytest.fixture
def in_canary(as_application: None, release: Release, node: Node, candidate: Version) -> Release:
    """The candidate was loaded, and half of the requests go to it."""
    steer_releases()
    assert Release.objects.get().sentence.startswith("The candidate is loaded on 0 of 1 node.")
    tell(node, candidate, Outcome.LOADED)
    steer_releases()
    assert AliasSplit.objects.get().basis_points == 5000
    return release


def test_a_candidate_that_does_as_well_is_promoted(
    in_canary: Release, record: Callable[..., None], clock: Callable[[float], None]
) -> None:
    steer_releases()
    assert Release.objects.get().state == ReleaseState.PROGRESSING
    record()
    clock(SECONDS + 3)
    steer_releases()
    found = Release.objects.get()
    assert found.state == ReleaseState.PROMOTED, found.sentence
    assert found.alias.version_id == found.candidate_id


def test_one_that_fails_is_rolled_back_and_leaves_its_node(
    in_canary: Release, record: Callable[..., None], clock: Callable[[float], None], candidate: Version
) -> None:
    record(fails_every=10)
    clock(SECONDS + 3)
    steer_releases()
    found = Release.objects.get()
    assert found.state == ReleaseState.ROLLED_BACK, found.sentence
    assert "Errors: 9.95 % of 794 requests" in found.sentence
    assert not AliasSplit.objects.exists()
    assert Residency.objects.get(version=candidate).desired == Desired.ABSENT
    steer_releases()
    assert Rollback.objects.get().last_answer_at is None


def test_without_requests_nothing_goes_on(in_canary: Release, clock: Callable[[float], None]) -> None:
    clock(3600)
    steer_releases()
    found = Release.objects.get()
    assert found.state == ReleaseState.PROGRESSING
    verdict = found.steps.get(kind="canary").verdict
    assert verdict is not None
    assert verdict["outcome"] == "inconclusive"
