"""Releases by HTTP: what is answered, what is refused, and how each verb is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.models import Version
from registry.states import Role
from releases.models import Alias, Release, ReleaseStep, Rollback
from tests.api.releases.conftest import AT_ONCE, Caller, Member
from tests.factories.registry import make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
VERDICT = {
    "outcome": "inconclusive",
    "sentence": "It can't be told yet.",
    "metrics": [
        {
            "metric": "errors",
            "outcome": "inconclusive",
            "sentence": "Errors: no data.",
            "tested": "mixture sequential test",
            "unit": "%",
            "holds": True,
            "canary": None,
            "stable": 1.0,
            "difference": None,
            "interval": {"low": None, "high": 2.5},
        }
    ],
    "slices": 3,
    "requests": {"canary": 0, "stable": 240},
    "mirrored": 0,
}


def started(caller: Caller, version: Version) -> Any:
    assert caller.make(version, plan_text=AT_ONCE).status_code == 201
    answer = caller.tell("start")
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_a_release_is_made_approved_and_started_by_two_people(
    ada: Caller, ben: Caller, versions: list[Version]
) -> None:
    made = ada.make(versions[1], reason="softer")
    assert made.status_code == 201, made.json()
    body = made.json()
    assert (body["tenant"], body["alias"], body["number"], body["state"]) == ("acme", "support", 1, "pending")
    assert body["candidate"] == {"adapter": "tone", "version": "v2", "version_id": str(versions[1].pk)}
    assert (body["stable"]["version"], body["template"], body["reason"]) == ("v1", None, "softer")
    assert (body["made_by"], body["approvals_needed"], body["approvals"]) == ("ada@example.com", 1, [])
    assert (body["step"], body["step_kind"], body["steps"]) == (0, "prewarm", 6)
    assert body["plan"]["canary"][0]["percent"] == 10
    assert body["sentence"]

    early = ada.tell("start")
    assert (early.status_code, early.json()["code"]) == (409, "approvals_missing")
    own = ada.tell("approve", {"digest": body["digest"]})
    assert (own.status_code, own.json()["code"]) == (409, "self_approval")
    wrong = ben.tell("approve", {"digest": "0" * 64})
    assert (wrong.status_code, wrong.json()["code"], wrong.json()["field"]) == (409, "digest_changed", "digest")

    approved = ben.tell("approve", {"digest": body["digest"], "comment": "fine"}).json()
    (approval,) = approved["approvals"]
    assert (approval["reviewer"], approval["digest"], approval["comment"]) == (
        "ben@example.com",
        body["digest"],
        "fine",
    )
    begun = ada.tell("start").json()
    assert (begun["state"], begun["approvals_given"]) == ("prewarming", 1)
    assert begun["started_at"] is not None


def test_the_same_wish_is_the_same_release_and_another_one_waits_its_turn(
    ada: Caller, ben: Caller, versions: list[Version]
) -> None:
    first = ada.make(versions[1]).json()
    assert ada.make(versions[1]).json()["id"] == first["id"]
    other = ben.make(versions[2])
    assert (other.status_code, other.json()["code"]) == (409, "release_active")
    moved = ada.put("aliases/support", {"adapter": "tone", "version": "v3"})
    assert (moved.status_code, moved.json()["code"]) == (409, "release_active")


def test_a_release_goes_by_the_template_that_it_names(ada: Caller, versions: list[Version]) -> None:
    ada.put("release-templates/careful", {"text": "approvals: 3\nshadow: null"})
    made = ada.make(versions[1], template="careful").json()
    assert (made["template"], made["approvals_needed"]) == ({"name": "careful", "number": 1}, 3)
    assert [step["kind"] for step in ada.get("aliases/support/releases/1/timeline").json()["results"]] == [
        "prewarm",
        "evaluate",
        "canary",
        "canary",
        "promote",
    ]


@pytest.mark.parametrize(
    ("facts", "status", "field"),
    [
        ({"template": "nope"}, 404, "template"),
        ({"template": "default", "plan_text": AT_ONCE}, 400, "plan_text"),
        ({"plan_text": "approvals: many"}, 400, "approvals"),
        ({"plan_text": r'"\UFFFFFFFF"'}, 400, "plan_text"),
        ({"plan_text": '"\\ud800": 1\n"\\ud800": 2'}, 400, "plan_text"),
        ({"plan_text": r'{"\ud83d\ude00": 1, "\ud83d\ude00": 2}'}, 400, "plan_text"),
        ({"plan_text": ""}, 400, "plan_text"),
        ({"version": "v9"}, 404, "version"),
        ({"adapter": "nope"}, 404, "adapter"),
        ({"version": None}, 400, "version"),
        ({"expected_revision": 7}, 409, "expected_revision"),
    ],
)
def test_what_no_release_can_be_made_of_is_refused_by_its_field(
    ada: Caller, versions: list[Version], facts: dict[str, Any], status: int, field: str
) -> None:
    refused = ada.make(versions[1], **facts)
    assert (refused.status_code, refused.json()["field"]) == (status, field), refused.json()
    assert not Release.objects.exists()


def test_a_release_to_where_the_alias_points_is_refused(ada: Caller, versions: list[Version]) -> None:
    refused = ada.make(versions[0])
    assert (refused.status_code, refused.json()["code"]) == (409, "target_not_servable")


def test_each_verb_leads_where_it_says(ada: Caller, versions: list[Version]) -> None:
    assert started(ada, versions[1])["state"] == "prewarming"
    paused = ada.tell("pause", {"reason": "lunch"}).json()
    assert (paused["state"], paused["pause_kind"]) == ("paused", "person")
    assert ada.tell("pause").json()["revision"] == paused["revision"]
    assert ada.tell("resume").json()["state"] == "prewarming"
    ada.tell("pause")
    again = ada.tell("retry").json()
    assert (again["state"], again["pause_kind"]) == ("prewarming", None)
    assert ada.get("aliases/support/releases/1/timeline").json()["results"][0]["attempt"] == 2
    gone = ada.tell("abort", {"reason": "wrong version"}).json()
    assert (gone["state"], gone["ended_at"] is not None) == ("aborted", True)
    late = ada.tell("resume")
    assert (late.status_code, late.json()["code"]) == (409, "wrong_release_state")


def test_a_promotion_moves_the_alias_and_a_rollback_takes_it_back(
    ada: Caller, member: Member, versions: list[Version]
) -> None:
    started(ada, versions[1])
    assert ada.tell("promote").json()["state"] == "promoted"
    assert ada.get("aliases/support").json()["version"] == "v2"
    operator = member(Role.OPERATOR)
    rolled = operator.tell("rollback", {"reason": "rude"})
    assert (rolled.status_code, rolled.json()["state"]) == (200, "rolled_back")
    assert ada.get("aliases/support").json()["version"] == "v1"
    (timing,) = rolled.json()["rollbacks"]
    assert (timing["release"], timing["left"]["version"], timing["strays"]) == (1, "v2", 0)
    assert timing["last_answer_at"] is timing["last_answer_ms"] is timing["settled_at"] is None
    assert operator.get("aliases/support/rollbacks").json()["results"] == [timing]


def test_a_rollback_is_the_same_however_often_it_is_clicked(ada: Caller, versions: list[Version]) -> None:
    started(ada, versions[1])
    first, again = ada.tell("rollback"), ada.tell("rollback")
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["revision"] == first.json()["revision"]
    assert Rollback.objects.count() == 1


def test_a_change_may_name_the_revision_it_is_based_on(ada: Caller, versions: list[Version]) -> None:
    begun = started(ada, versions[1])
    late = ada.tell("pause", {"expected_revision": begun["revision"] - 1})
    assert (late.status_code, late.json()["field"]) == (409, "expected_revision")
    assert ada.tell("pause", {"expected_revision": begun["revision"]}).json()["state"] == "paused"


def test_a_rollback_counts_from_when_the_request_came(
    ada: Caller, versions: list[Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    started(ada, versions[1])
    before = timezone.now()
    assert ada.tell("rollback").status_code == 200
    rollback = Rollback.objects.get()
    assert before <= rollback.asked_at <= rollback.committed_at <= timezone.now()


def test_an_alias_s_own_rollback_is_timed_as_well(ada: Caller, versions: list[Version]) -> None:
    ada.put("aliases/support", {"adapter": "tone", "version": "v2"})
    before = timezone.now()
    assert ada.post("aliases/support/rollback").json()["version"] == "v1"
    (timing,) = ada.get("aliases/support/rollbacks").json()["results"]
    assert (timing["release"], timing["left"]["version"], timing["revision"]) == (None, "v2", 3)
    assert before <= Rollback.objects.get().asked_at
    assert timing["commit_ms"] >= 0


def test_the_time_to_the_last_answer_is_told_from_the_click(ada: Caller, versions: list[Version]) -> None:
    alias = Alias.objects.get(name="support")
    asked = datetime(2026, 7, 4, 12, tzinfo=UTC)
    for number, last in ((2, timedelta(milliseconds=812)), (3, -timedelta(milliseconds=3)), (4, None)):
        Rollback.objects.create(
            alias=alias,
            revision=number,
            left=versions[1],
            asked_at=asked + timedelta(seconds=number),
            committed_at=asked + timedelta(seconds=number, milliseconds=41.5),
            last_answer_at=None if last is None else asked + timedelta(seconds=number) + last,
            strays=number,
        )
    told = ada.get("aliases/support/rollbacks").json()["results"]
    assert [(row["revision"], row["commit_ms"], row["last_answer_ms"], row["strays"]) for row in told] == [
        (4, 41.5, None, 4),
        (3, 41.5, 0.0, 3),
        (2, 41.5, 812.0, 2),
    ]


def test_the_timeline_has_every_step_with_what_the_judge_says(ada: Caller, versions: list[Version]) -> None:
    started(ada, versions[1])
    ReleaseStep.objects.filter(index=0).update(verdict=VERDICT, judged_at=timezone.now(), sentence="It waits.")
    steps = ada.get("aliases/support/releases/1/timeline").json()
    assert steps["next"] is None
    assert [(step["index"], step["kind"], step["state"]) for step in steps["results"]] == [
        (0, "prewarm", "running"),
        (1, "evaluate", "waiting"),
        (2, "shadow", "waiting"),
        (3, "canary", "waiting"),
        (4, "canary", "waiting"),
        (5, "promote", "waiting"),
    ]
    first, *_others, last = steps["results"]
    assert (first["verdict"], first["sentence"]) == (VERDICT, "It waits.")
    assert (last["verdict"], last["spec"]) == (None, {})
    assert steps["results"][3]["spec"]["percent"] == 10


def test_releases_are_listed_newest_first_and_by_what_is_asked_for(
    ada: Caller, member: Member, versions: list[Version]
) -> None:
    started(ada, versions[1])
    ada.tell("abort")
    ada.make(versions[2])
    viewer = member(Role.VIEWER)

    def numbers(**filters: Any) -> list[int]:
        return [row["number"] for row in viewer.get("releases", **filters).json()["results"]]

    assert numbers() == [2, 1]
    assert numbers(active="true") == numbers(state="pending") == numbers(version="v3") == [2]
    assert numbers(active="false") == numbers(state="aborted") == [1]
    assert numbers(alias="support", adapter="tone") == [2, 1]
    assert numbers(alias="other") == []
    assert viewer.get("releases", states="aborted").json()["field"] == "states"
    first = viewer.get("releases", limit=1).json()
    assert [row["number"] for row in viewer.get("releases", cursor=first["next"]).json()["results"]] == [1]
    assert set(viewer.release()) - set(first["results"][0]) == {"plan", "approvals", "rollbacks"}


def test_listing_costs_the_same_number_of_queries_however_many_there_are(ada: Caller, versions: list[Version]) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert ada.get("releases").status_code == 200
        return len(caught)

    ada.make(versions[1])
    ada.tell("abort")
    few = queries()
    for number in (2, 3):
        ada.make(versions[number - 1])
        ada.tell("abort", number=number)
    assert queries() == few


def test_a_release_has_an_etag_that_changes_with_it(ada: Caller, versions: list[Version]) -> None:
    ada.make(versions[1])
    address = "/api/v1/tenants/acme/aliases/support/releases/1"
    headers = {"Authorization": f"Bearer {ada.token}"}
    tag = ada.client.get(address, headers=headers).headers["ETag"]
    assert ada.client.get(address, headers={**headers, "If-None-Match": tag}).status_code == 304
    ada.tell("abort")
    assert ada.client.get(address, headers={**headers, "If-None-Match": tag}).status_code == 200


def test_a_verb_that_comes_again_with_its_key_is_answered_as_before(ada: Caller, versions: list[Version]) -> None:
    ada.make(versions[1], plan_text=AT_ONCE)
    path = "aliases/support/releases/1/start"
    first = ada.post(path, {}, **{"Idempotency-Key": "k"})
    ada.tell("abort")
    again = ada.post(path, {}, **{"Idempotency-Key": "k"})
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")


MAKERS = {Role.RELEASE_MANAGER}
STEERERS = {Role.RELEASE_MANAGER, Role.OPERATOR}
VERBS = {
    "approve": {Role.RELEASE_MANAGER, Role.REVIEWER},
    "start": MAKERS,
    "pause": STEERERS,
    "resume": STEERERS,
    "retry": STEERERS,
    "promote": MAKERS,
    "abort": STEERERS,
    "rollback": STEERERS,
}


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_do_exactly_what_belongs_to_it(
    ada: Caller, member: Member, versions: list[Version], role: Role
) -> None:
    caller = member(role)
    assert (caller.make(versions[2]).status_code != 403) == (role in MAKERS)
    Release.objects.exists() or ada.make(versions[1], plan_text=AT_ONCE)
    body = {"digest": Release.objects.get().digest}
    for verb, allowed in VERBS.items():
        answer = caller.tell(verb, body if verb == "approve" else {})
        assert (answer.status_code != 403) == (role in allowed), verb
    for path in ("releases", "aliases/support/releases/1", "aliases/support/releases/1/timeline"):
        assert caller.get(path).status_code == 200


def test_strangers_see_no_release(member: Member, ada: Caller, versions: list[Version]) -> None:
    ada.make(versions[1])
    stranger = member(*Role, of=make_tenant())
    assert stranger.make(versions[1]).status_code == 404
    assert stranger.tell("rollback").status_code == 404
    for path in ("releases", "aliases/support/releases/1", "aliases/support/rollbacks"):
        assert stranger.get(path).status_code == 404


def test_what_is_not_there_is_told_by_its_field(ada: Caller, versions: list[Version]) -> None:
    assert ada.get("aliases/support/releases/9").json()["field"] == "number"
    assert ada.get("aliases/nope/releases/1").json()["field"] == "alias"
    assert ada.post("aliases/nope/releases", {"adapter": "tone", "version": "v2"}).json()["field"] == "alias"
    other = make_version()
    assert ada.make(other).json()["field"] == "adapter"
