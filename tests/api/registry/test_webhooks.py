from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.models import Tenant, WebhookEndpoint
from tests.factories.registry import make_tenant
from tests.factories.webhooks import make_delivery, make_webhook

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
PLACES = ["/api/v1/tenants/acme/webhooks", "/api/v1/webhooks"]
WISH = {"name": "ci", "url": "https://receiver.example/events", "kinds": ["version.*", "node.lost"]}


@pytest.fixture(params=PLACES)
def place(request: Any, tenant: Tenant) -> str:
    return str(request.param)


def make(place: str, **facts: Any) -> WebhookEndpoint:
    return make_webhook(tenant=Tenant.objects.get(name="acme") if "acme" in place else None, **facts)


def test_a_webhook_is_made_shown_listed_changed_and_removed(admin: APIClient, place: str) -> None:
    made = admin.post(place, WISH, format="json")
    assert made.status_code == 201, made.json()
    assert made.json()["secret"].startswith("whsec_")
    assert made.json()["tenant"] == ("acme" if "acme" in place else None)
    shown = admin.get(f"{place}/ci")
    assert "secret" not in shown.json()
    assert {**shown.json(), "secret": made.json()["secret"]} == made.json()
    assert admin.get(place).json() == {"results": [shown.json()], "next": None}
    change = {"url": "https://receiver.example/2", "kinds": ["release.*"]}
    changed = admin.put(f"{place}/ci", change, format="json", headers={"If-Match": shown["ETag"]})
    assert (changed.status_code, changed.json()["kinds"]) == (200, ["release.*"])
    stale = admin.put(f"{place}/ci", change, format="json", headers={"If-Match": shown["ETag"]})
    assert stale.status_code == 412
    assert admin.delete(f"{place}/ci", headers={"If-Match": shown["ETag"]}).status_code == 412
    assert admin.delete(f"{place}/ci").status_code == 204
    assert admin.get(f"{place}/ci").status_code == 404


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "http://receiver.example/"}, "url"),
        ({"kinds": ["no.such"]}, "kinds"),
        ({"kinds": []}, "kinds"),
        ({"name": "A b"}, "name"),
    ],
)
def test_a_wish_that_can_not_be_names_its_field(admin: APIClient, place: str, facts: Any, field: str) -> None:
    answer = admin.post(place, {**WISH, **facts}, format="json")
    assert (answer.status_code, answer.json()["field"].partition(".")[0]) == (400, field), answer.json()


def test_a_name_that_is_taken_is_a_conflict(admin: APIClient, place: str) -> None:
    make(place, name="ci")
    assert admin.post(place, WISH, format="json").json()["code"] == "name_taken"


def test_a_secret_is_rotated_and_the_answer_says_until_when_both_sign(admin: APIClient, place: str) -> None:
    make(place, name="ci")
    answer = admin.post(f"{place}/ci/rotate-secret", {"overlap_hours": 2}, format="json").json()
    assert answer["secret"].startswith("whsec_")
    assert answer["previous_secret_until"] is not None
    at_once = admin.post(f"{place}/ci/rotate-secret", {"overlap_hours": 0}, format="json").json()
    assert at_once["previous_secret_until"] is None
    assert admin.post(f"{place}/ci/rotate-secret", {"overlap_hours": 1000}, format="json").status_code == 400


def test_it_is_disabled_and_enabled(admin: APIClient, place: str) -> None:
    make(place, name="ci")
    off = admin.post(f"{place}/ci/disable", {"reason": "moving"}, format="json").json()
    assert (off["disabled_reason"], off["disabled_at"] is None) == ("moving", False)
    refused = admin.post(f"{place}/ci/ping")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    on = admin.post(f"{place}/ci/enable", {"skip_missed": True}, format="json").json()
    assert (on["disabled_reason"], on["disabled_at"]) == ("", None)


def test_a_ping_is_sent_soon_and_stands_among_the_deliveries(admin: APIClient, place: str, sent: list[Any]) -> None:
    make(place, name="ci")
    answer = admin.post(f"{place}/ci/ping")
    assert (answer.status_code, answer.json()["kind"], answer.json()["state"]) == (202, "ping", "pending")
    assert '"type":"ping"' in answer.json()["body"]
    (listed,) = admin.get(f"{place}/ci/deliveries").json()["results"]
    assert {**listed, "body": answer.json()["body"]} == answer.json()


def test_the_log_shows_what_was_sent_with_every_attempt_and_it_can_be_sent_again(admin: APIClient, place: str) -> None:
    delivery = make_delivery(endpoint=make(place, name="ci"), event_id="acme_7")
    delivery.attempts.create(number=1, at=delivery.created_at, status=500, took_ms=12, excerpt="no")
    make_delivery(endpoint=delivery.endpoint, kind="node.lost", state="parked", ended_at=delivery.created_at)
    url = f"{place}/ci/deliveries"
    shown = admin.get(f"{url}/{delivery.pk}").json()
    assert shown["body"] == delivery.body
    (attempt,) = shown["attempts"]
    assert (attempt["number"], attempt["status"], attempt["took_ms"], attempt["excerpt"]) == (1, 500, 12, "no")
    assert [each["kind"] for each in admin.get(url).json()["results"]] == ["node.lost", "version.approved"]
    for wanted, kinds in (
        ("state=parked", ["node.lost"]),
        ("kind=version.approved", ["version.approved"]),
        ("event=acme_7", ["version.approved"]),
        ("state=delivered", []),
    ):
        assert [each["kind"] for each in admin.get(f"{url}?{wanted}").json()["results"]] == kinds
    again = admin.post(f"{url}/{delivery.pk}/redeliver")
    assert again.status_code == 202
    assert (again.json()["event"], again.json()["again_of"]) == ("acme_7", delivery.pk)


@pytest.mark.parametrize("number", ["0", "999999999999999999", "9" * 40, "x", "-1", "%00"])
def test_a_delivery_that_is_not_there_is_not_found(admin: APIClient, place: str, number: str) -> None:
    make(place, name="ci")
    assert admin.get(f"{place}/ci/deliveries/{number}").status_code == 404
    assert admin.post(f"{place}/ci/deliveries/{number}/redeliver").status_code == 404


def test_a_delivery_of_another_webhook_is_not_found(admin: APIClient, place: str) -> None:
    make(place, name="ci")
    others = [make(place, name="another"), make_webhook(tenant=make_tenant(), name="ci")]
    for other in others:
        assert admin.get(f"{place}/ci/deliveries/{make_delivery(endpoint=other).pk}").status_code == 404
