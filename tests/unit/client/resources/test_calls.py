import json
from typing import Any

import httpx
import pytest

from client import LorekeeperClient, PairRef, RetryPolicy, ServerFailed, UnexpectedAnswer, VersionRef, WaitTimedOut
from client.resources.nodes import EVICT_ENDS, WARM_ENDS

REF = VersionRef("acme", "tone", "v1")
ALIAS = PairRef("acme", "support")
VERSION = {"id": "1", "tenant": "acme", "adapter": "tone", "name": "v1", "state": "approved", "root_digest": "ab"}
ALIAS_JSON = {"tenant": "acme", "name": "support", "adapter": "tone", "version": "v1", "revision": 2}
RESIDENCY = {"node": "n1", "tenant": "acme", "adapter": "tone", "version": "v1", "desired": "gpu", "generation": 2}


class Recorder:
    """Answers every request with one JSON value (or a list's next) and keeps what was asked."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.raw_path.decode().removeprefix("/api/v1/"), body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return httpx.Response(answer) if isinstance(answer, int) else httpx.Response(200, json=answer)

    def client(self) -> LorekeeperClient:
        retry = RetryPolicy(attempts=2, sleep=lambda _seconds: None)
        return LorekeeperClient("http://registry.test", "lk_1", retry=retry, transport=httpx.MockTransport(self))


def test_approval_names_the_digest() -> None:
    server = Recorder(VERSION)
    server.client().versions.approve(REF, digest="ab", comment="good")
    path = "tenants/acme/adapters/tone/versions/v1/approve"
    assert server.asked == [("POST", path, {"digest": "ab", "comment": "good"})]


def test_a_password_link_is_made_for_an_address() -> None:
    server = Recorder({"email": "ben@acme.example", "url": "https://x/ui/password/k", "expires_at": "2026-12-01"})
    assert server.client().tenants.make_password_link("ben@acme.example").url == "https://x/ui/password/k"
    assert server.asked == [("POST", "people/ben%40acme.example/password-link", None)]


def test_an_answer_about_another_version_is_refused() -> None:
    server = Recorder({**VERSION, "name": "v2"})
    with pytest.raises(UnexpectedAnswer, match="v2"):
        server.client().versions.revoke(REF, reason="bad")


def test_yank_and_decline_carry_their_reasons() -> None:
    server = Recorder(VERSION)
    server.client().versions.yank(REF, reason="old")
    server.client().versions.decline(REF, reason="worse")
    assert [asked[2] for asked in server.asked] == [{"reason": "old"}, {"reason": "worse"}]


def test_a_move_without_expected_revision_is_tried_again() -> None:
    server = Recorder(503, ALIAS_JSON)
    assert server.client().aliases.set(ALIAS, REF).revision == 2
    assert server.asked[0] == ("PUT", "tenants/acme/aliases/support", {"adapter": "tone", "version": "v1"})


def test_a_move_with_expected_revision_is_not_tried_again() -> None:
    server = Recorder(503, ALIAS_JSON)
    with pytest.raises(ServerFailed):
        server.client().aliases.set(ALIAS, REF, expected_revision=1)
    assert len(server.asked) == 1


def test_a_list_is_read_page_by_page() -> None:
    server = Recorder({"results": [ALIAS_JSON], "next": "more"}, {"results": [ALIAS_JSON], "next": None})
    assert len(server.client().aliases.all("acme")) == 2
    assert [path for _method, path, _body in server.asked] == [
        "tenants/acme/aliases",
        "tenants/acme/aliases?cursor=more",
    ]


def test_a_list_that_leads_back_to_a_page_is_refused() -> None:
    server = Recorder({"results": [ALIAS_JSON], "next": "more"})
    with pytest.raises(UnexpectedAnswer, match="no end"):
        server.client().aliases.all("acme")


def test_finalize_is_tried_again() -> None:
    server = Recorder(503, VERSION)
    assert server.client().versions.finalize(REF).state == "approved"


def test_waiting_ends_with_the_validation() -> None:
    server = Recorder({**VERSION, "state": "validating"}, {**VERSION, "state": "rejected"})
    slept: list[float] = []
    assert server.client().versions.wait(REF, sleep=slept.append).state == "rejected"
    assert len(slept) == 1


def test_waiting_too_long_says_the_state() -> None:
    server = Recorder({**VERSION, "state": "validating"})
    now = iter(range(1000))
    with pytest.raises(WaitTimedOut, match="still validating after 5 s"):
        server.client().versions.wait(REF, timeout_s=5, clock=lambda: next(now), sleep=lambda _seconds: None)


def test_warming_ignores_what_an_older_generation_left() -> None:
    states = [("loaded", 1), ("loading", 2), ("loaded", 2)]
    nodes = [{"name": "n1", "residencies": [{**RESIDENCY, "observed": o, "generation": g}]} for o, g in states]
    server = Recorder(*nodes)
    found = server.client().nodes.wait("n1", REF, ends=WARM_ENDS, generation=2, sleep=lambda _seconds: None)
    assert found is not None
    assert (found.observed, found.generation, len(server.asked)) == ("loaded", 2, 3)


def test_warming_again_ignores_the_failure_before() -> None:
    states = [("failed", ""), ("loading", ""), ("failed", "The probe was not finite.")]
    nodes = [{"name": "n1", "residencies": [{**RESIDENCY, "observed": o, "message": m}]} for o, m in states]
    server = Recorder(*nodes)
    found = server.client().nodes.wait("n1", REF, ends=WARM_ENDS, generation=2, sleep=lambda _seconds: None)
    assert found is not None
    assert (found.message, len(server.asked)) == ("The probe was not finite.", 3)


def test_a_rollback_names_the_revision_to_leave() -> None:
    safe = Recorder(503, ALIAS_JSON)
    assert safe.client().aliases.rollback(ALIAS, from_revision=1, reason="slow").revision == 2
    assert safe.asked == [("POST", "tenants/acme/aliases/support/rollback", {"reason": "slow", "from_revision": 1})] * 2


def test_a_split_names_candidate_shadow_and_shares() -> None:
    server = Recorder({**ALIAS_JSON, "split": {"adapter": "tone", "version": "v2", "basis_points": 500}})
    candidate, shadow = VersionRef("acme", "tone", "v2"), VersionRef("acme", "tone", "v3")
    split = server.client().aliases.split(
        ALIAS, candidate, basis_points=500, shadow=shadow, shadow_basis_points=7, expected_revision=2
    )
    assert split.split is not None
    assert split.split.basis_points == 500
    ((method, path, body),) = server.asked
    assert (method, path) == ("PUT", "tenants/acme/aliases/support/split")
    assert (body["version"], body["shadow_version"], body["expected_revision"]) == ("v2", "v3", 2)
    with pytest.raises(ValueError, match="other"):
        server.client().aliases.split(ALIAS, VersionRef("other", "tone", "v2"))


def test_the_end_of_a_split_says_why() -> None:
    server = Recorder(ALIAS_JSON)
    server.client().aliases.unsplit(ALIAS, reason="too slow")
    assert server.asked == [("DELETE", "tenants/acme/aliases/support/split?reason=too+slow", None)]


def test_base_models_come_with_their_revisions() -> None:
    revision = {"name": "smol", "revision": "r1", "digest": "d", "max_rank": 64}
    models = Recorder({"results": [{"name": "smol", "revisions": [revision]}]}).client().base_models.all()
    assert models[0].revisions[0].revision == "r1"


def test_an_evicted_residency_may_be_gone() -> None:
    server = Recorder({"name": "n1", "residencies": []})
    assert server.client().nodes.wait("n1", REF, ends=EVICT_ENDS, generation=1) is None


def test_warm_and_evict_name_the_version() -> None:
    server = Recorder({**RESIDENCY, "observed": "fetching"})
    server.client().nodes.warm("n1", REF)
    server.client().nodes.evict("n1", REF)
    body = {"tenant": "acme", "adapter": "tone", "version": "v1"}
    assert server.asked == [("POST", "nodes/n1/warm", body), ("POST", "nodes/n1/evict", {**body, "to": "absent"})]


def test_a_node_is_set_aside_and_restarted_with_a_reason() -> None:
    server = Recorder({"name": "n1", "cordoned": True, "drift": {"unknown": ["x"], "mismatched": []}})
    nodes = server.client().nodes
    for operation in (nodes.cordon, nodes.uncordon, nodes.drain, nodes.resume, nodes.recycle):
        found = operation("n1", reason="new driver")
    assert (found.condition, found.drift.unknown) == (("cordoned",), ("x",))
    body = {"reason": "new driver"}
    verbs = ("cordon", "uncordon", "drain", "resume", "recycle")
    assert server.asked == [("POST", f"nodes/n1/{verb}", body) for verb in verbs]


def test_audit_pages_are_followed_to_the_end() -> None:
    def record(seq: int) -> dict[str, object]:
        texts = dict.fromkeys(("at", "action", "prev_hash", "hash", "payload"), "")
        return {"seq": seq, "actor": {}, "object": {}, **texts}

    server = Recorder({"results": [record(1), record(2)], "next": "c"}, {"results": [record(3)], "next": None})
    assert [found.seq for found in server.client().audit.records("acme", after_seq=5)] == [1, 2, 3]
    assert [asked[1].partition("?")[2] for asked in server.asked] == ["after_seq=5", "after_seq=5&cursor=c"]


def test_the_platforms_own_log_is_read_by_its_name() -> None:
    server = Recorder({"results": [], "next": None})
    assert list(server.client().audit.records("platform", action="platform:node")) == []
    assert [asked[1] for asked in server.asked] == ["audit?action=platform%3Anode"]


def test_a_token_is_asked_for_with_its_scopes() -> None:
    server = Recorder({"prefix": "abc", "token": "lk_abc_x", "scopes": ["infer"]})
    made = server.client().tenants.create_token("acme", name="app", kind="application", scopes=["infer"])
    assert made.token == "lk_abc_x"
    assert "lk_abc_x" not in repr(made)
    assert server.asked[0][2] == {"name": "app", "kind": "application", "scopes": ["infer"]}


def test_published_keys_are_read() -> None:
    server = Recorder({"keys": [{"key_id": "k", "public_key": "PEM", "valid_from": None}]})
    assert server.client().keys.published()[0].key_id == "k"


def test_an_alias_of_another_tenant_is_refused_before_it_is_asked_for() -> None:
    server = Recorder(ALIAS_JSON)
    with pytest.raises(ValueError, match="other"):
        server.client().aliases.set(PairRef("other", "support"), REF)
    assert server.asked == []
