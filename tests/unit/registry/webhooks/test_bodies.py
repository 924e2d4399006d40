import json
from dataclasses import replace
from datetime import UTC, datetime

from registry.webhooks.bodies import Happening, event_body, event_id, object_key, ping_body

AT = datetime(2026, 7, 4, 12, 0, 0, 123456, tzinfo=UTC)
HAPPENING = Happening(
    chain="acme",
    seq=1234,
    tenant="acme",
    at=AT,
    action="adapter:version:revoke",
    actor={"kind": "person", "id": "rui@acme.example", "name": "Rui", "token": "0123456789ab"},
    object={"kind": "version", "id": "v-1", "name": "acme/tone@v1"},
    before={"state": "approved"},
    after={"state": "revoked"},
    reason="giftig \N{SKULL}",
    hash="9b1e",
)


def test_a_body_tells_what_the_record_tells_without_the_token_of_who_acted() -> None:
    body = event_body(HAPPENING)
    assert json.loads(body) == {
        "id": "acme_1234",
        "type": "version.revoked",
        "timestamp": "2026-07-04T12:00:00.123Z",
        "tenant": "acme",
        "data": {
            "object": {"kind": "version", "id": "v-1", "name": "acme/tone@v1"},
            "actor": {"kind": "person", "id": "rui@acme.example", "name": "Rui"},
            "before": {"state": "approved"},
            "after": {"state": "revoked"},
            "reason": "giftig \N{SKULL}",
            "audit": {"chain": "acme", "seq": 1234, "action": "adapter:version:revoke", "hash": "9b1e"},
        },
    }
    assert "0123456789ab" not in body


def test_an_id_belongs_to_one_record_alone() -> None:
    ids = {event_id(chain=chain, seq=seq) for chain in ("acme", "acme-1", "platform") for seq in (1, 11, 111)}
    assert len(ids) == 9
    assert not any("." in one for one in ids), "a full stop ends the id in what is signed"


def test_events_of_one_object_have_one_key() -> None:
    approved = replace(HAPPENING, seq=2, action="adapter:version:approve")
    assert object_key(HAPPENING) == object_key(approved) == "version:v-1"
    assert object_key(replace(HAPPENING, object={})) == ":"


def test_a_ping_says_to_which_endpoint_it_was_sent() -> None:
    body = json.loads(ping_body(event_id="ping_1", tenant=None, endpoint="ci", at=AT))
    assert (body["type"], body["id"], body["tenant"], body["data"]) == ("ping", "ping_1", None, {"endpoint": "ci"})
