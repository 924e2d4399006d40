"""From a change to what a receiver gets: the log is the outbox, and whatever goes wrong is made up for."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Lease
from registry.audit import append_record
from registry.models import AuditRecord, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from registry.services.webhooks import outbox
from registry.services.webhooks.deliveries import (
    CLAIM,
    DISABLED_AFTER,
    claim_deliveries,
    forget_old_deliveries,
    ping_webhook,
    redeliver,
    settle_attempt,
)
from registry.services.webhooks.endpoints import create_webhook, disable_webhook, enable_webhook, rotate_secret
from registry.services.webhooks.outbox import collect_events
from registry.services.withdrawals import revoke_version
from registry.states import DeliveryState
from registry.webhooks.sending import Outcome
from tests.factories.registry import make_actor, make_tenant, make_version
from tests.factories.webhooks import SECRET, make_delivery, make_webhook
from tests.fakes.receiver import Receiver, Reply, receiving
from workers.jobs.webhooks import deliver_webhooks

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
FAILED = Outcome(status=500, took_ms=1)


def happen(chain: str, action: str = "adapter:version:approve", *, about: str = "v-1") -> int:
    kind = action.split(":")[1]
    object_ = {"kind": kind, "id": about, "name": about}
    return append_record(actor=make_actor(), chain=chain, action=action, object_=object_)


def make_due(endpoint: WebhookEndpoint) -> None:
    """As if the pauses were over."""
    endpoint.deliveries.filter(state=DeliveryState.PENDING.value).update(next_at=timezone.now() - timedelta(seconds=1))


def states(endpoint: WebhookEndpoint) -> list[str]:
    return list(endpoint.deliveries.order_by("pk").values_list("state", flat=True))


@pytest.fixture
def endpoint(receiver: Receiver) -> WebhookEndpoint:
    return make_webhook(tenant=make_tenant(name="acme"), url=receiver.url)


@pytest.fixture
def other() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def test_a_change_is_posted_with_what_the_log_says_of_it(receiver: Receiver) -> None:
    version = make_version()
    tenant = version.adapter.tenant
    made = create_webhook(actor=make_actor(), tenant=tenant, name="ci", url=receiver.url, kinds=["version.revoked"])
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    deliver_webhooks()
    (came,) = receiver.came
    record = AuditRecord.objects.get(action="adapter:version:revoke")
    body = json.loads(came.body)
    assert (body["type"], body["id"], body["tenant"]) == (
        "version.revoked",
        f"{tenant.name}_{record.seq}",
        tenant.name,
    )
    assert body["data"]["object"]["id"] == str(version.pk)
    assert body["data"]["reason"] == "poisoned"
    assert body["data"]["audit"] == {
        "chain": tenant.name,
        "seq": record.seq,
        "action": "adapter:version:revoke",
        "hash": record.hash,
    }
    assert came.headers["webhook-id"] == body["id"]
    assert states(made.endpoint) == ["delivered"]
    deliver_webhooks()
    assert len(receiver.came) == 1


def test_an_endpoint_is_told_of_its_kinds_alone_and_of_nothing_from_before(receiver: Receiver) -> None:
    tenant = make_tenant(name="acme")
    happen("acme")
    create_webhook(actor=make_actor(), tenant=tenant, name="ci", url=receiver.url, kinds=["version.*"])
    happen("acme", "tenant:alias:move")
    happen("acme", "tenant:member:add")
    told = happen("acme", "adapter:version:yank")
    happen("platform", "platform:node:lose")
    happen(make_tenant().name)
    deliver_webhooks()
    assert receiver.ids == [f"acme_{told}"]


def test_the_platforms_endpoint_is_told_of_every_chain_of_new_tenants_from_their_beginning(receiver: Receiver) -> None:
    old = make_tenant()
    happen(old.name)
    kinds = ["version.*", "node.lost"]
    create_webhook(actor=make_actor(), tenant=None, name="ops", url=receiver.url, kinds=kinds)
    new = make_tenant()
    ids = {
        f"{old.name}_{happen(old.name)}",
        f"{new.name}_{happen(new.name)}",
        f"platform_{happen('platform', 'platform:node:lose')}",
    }
    deliver_webhooks()
    assert set(receiver.ids) == ids
    tenants = {json.loads(came.body)["tenant"] for came in receiver.came}
    assert tenants == {old.name, new.name, None}


def test_what_is_about_one_object_comes_in_order_and_waits_for_what_was_before(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    first, second, third = happen("acme"), happen("acme", about="v-2"), happen("acme", "adapter:version:revoke")
    receiver.otherwise = Reply(status=500)
    deliver_webhooks()
    assert set(receiver.ids) == {f"acme_{first}", f"acme_{second}"}
    receiver.otherwise = Reply()
    make_due(endpoint)
    deliver_webhooks()
    of_one = [name for name in receiver.ids if name != f"acme_{second}"]
    assert of_one == [f"acme_{first}", f"acme_{first}", f"acme_{third}"]
    assert states(endpoint) == ["delivered"] * 3


def test_what_has_not_got_through_for_a_day_is_parked_and_holds_up_nothing(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    old = timezone.now() - timedelta(days=2)
    first = make_delivery(endpoint=endpoint, object_key="version:v-1", created_at=old)
    later = happen("acme", "adapter:version:revoke")
    receiver.replies = [Reply(status=500)]
    deliver_webhooks()
    assert receiver.ids == [first.event_id, f"acme_{later}"]
    assert states(endpoint) == ["parked", "delivered"]


def test_a_failure_is_tried_again_later_with_the_same_id_and_body_and_a_new_time(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    happen("acme")
    receiver.replies = [Reply(status=503, body=b"not now", headers={"Retry-After": "600"}), Reply(hangs_up=True)]
    deliver_webhooks()
    delivery = endpoint.deliveries.get()
    assert (delivery.state, delivery.tries) == ("pending", 1)
    assert timedelta(minutes=9) < delivery.next_at - timezone.now() <= timedelta(minutes=10)
    endpoint.refresh_from_db()
    assert endpoint.failing_since is not None
    for _again in range(2):
        make_due(endpoint)
        deliver_webhooks()
    assert len({(came.headers["webhook-id"], came.body) for came in receiver.came}) == 1
    delivery.refresh_from_db()
    endpoint.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("delivered", 3)
    assert WebhookEndpoint.objects.get().failing_since is None
    log = list(WebhookAttempt.objects.filter(delivery=delivery).values_list("number", "status", "excerpt"))
    assert log == [(1, 503, "not now"), (2, None, ""), (3, 204, "")]
    assert delivery.attempts.get(number=2).error


def test_a_slow_receiver_holds_up_no_other(
    receiver: Receiver, endpoint: WebhookEndpoint, other: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = make_webhook(tenant=endpoint.tenant, url=other.url)
    receiver.otherwise = Reply(delay_s=1.5)
    for number in range(8):
        happen("acme", about=f"v-{number}")
    deliver_webhooks()
    assert states(quick) == states(endpoint) == ["delivered"] * 8
    last_quick = quick.deliveries.latest("ended_at").ended_at
    first_slow = endpoint.deliveries.earliest("ended_at").ended_at
    assert last_quick is not None
    assert first_slow is not None
    assert last_quick < first_slow
    assert receiver.most_at_once <= 4


def test_a_receiver_that_fails_is_asked_once_at_a_time(receiver: Receiver, endpoint: WebhookEndpoint) -> None:
    WebhookEndpoint.objects.update(failing_since=timezone.now())
    receiver.otherwise = Reply(status=500, delay_s=0.05)
    for number in range(6):
        happen("acme", about=f"v-{number}")
    deliver_webhooks()
    assert len(receiver.came) == 6
    assert receiver.most_at_once == 1


def test_an_attempt_of_a_worker_that_was_killed_is_made_again_with_the_same_id(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    seq = happen("acme")
    collect_events()
    (claim,) = claim_deliveries(most=9, busy={})
    assert claim_deliveries(most=9, busy={}) == [], "it is being made"
    deliver_webhooks()
    assert receiver.came == []
    assert endpoint.deliveries.get().next_at > timezone.now() + CLAIM / 2
    make_due(endpoint)
    deliver_webhooks()
    assert receiver.ids == [f"acme_{seq}"]
    settle_attempt(claim=claim, outcome=FAILED)
    assert states(endpoint) == ["delivered"], "what comes late changes nothing"


def test_an_endpoint_that_nothing_gets_through_to_for_days_is_disabled_and_the_log_says_so(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    WebhookEndpoint.objects.update(failing_since=timezone.now() - DISABLED_AFTER)
    receiver.otherwise = Reply(status=500)
    happen("acme")
    deliver_webhooks()
    endpoint.refresh_from_db()
    assert endpoint.disabled_at is not None
    record = AuditRecord.objects.get(action="tenant:webhook:disable")
    assert (record.chain, record.actor["id"], record.reason) == ("acme", "webhooks", endpoint.disabled_reason)
    happen("acme", about="v-2")
    make_due(endpoint)
    deliver_webhooks()
    assert len(receiver.came) == 1


def test_a_receiver_that_says_it_is_gone_is_disabled_at_once(receiver: Receiver, endpoint: WebhookEndpoint) -> None:
    receiver.otherwise = Reply(status=410)
    happen("acme")
    deliver_webhooks()
    endpoint.refresh_from_db()
    assert "410" in endpoint.disabled_reason


@pytest.mark.parametrize(("skips", "told"), [(False, ["v-1", "v-2"]), (True, ["v-2"])])
def test_when_it_is_enabled_again_it_is_told_of_what_it_missed_unless_that_is_skipped(
    receiver: Receiver, endpoint: WebhookEndpoint, skips: bool, told: list[str]
) -> None:
    disable_webhook(actor=make_actor(), endpoint=endpoint, reason="moving")
    happen("acme", about="v-1")
    deliver_webhooks()
    enable_webhook(actor=make_actor(), endpoint=endpoint, skip_missed=skips)
    happen("acme", about="v-2")
    deliver_webhooks()
    assert sorted(json.loads(came.body)["data"]["object"]["id"] for came in receiver.came) == told


def test_what_is_skipped_was_on_its_way_already_and_is_sent_by_hand_alone(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    receiver.otherwise = Reply(status=500)
    seq = happen("acme", about="v-1")
    deliver_webhooks()
    disable_webhook(actor=make_actor(), endpoint=endpoint, reason="moving")
    receiver.otherwise = Reply()
    enable_webhook(actor=make_actor(), endpoint=endpoint, skip_missed=True)
    skipped = endpoint.deliveries.get()
    assert (skipped.state, skipped.ended_at is None) == ("parked", False)
    make_due(endpoint)
    deliver_webhooks()
    assert len(receiver.came) == 1
    redeliver(actor=make_actor(), delivery=skipped)
    deliver_webhooks()
    assert receiver.ids == [f"acme_{seq}"] * 2


def test_while_a_secret_is_changed_deliveries_are_signed_with_both(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    rotate_secret(actor=make_actor(), endpoint=endpoint, overlap=timedelta(hours=1))
    happen("acme")
    deliver_webhooks()
    WebhookEndpoint.objects.update(previous_until=timezone.now())
    happen("acme", about="v-2")
    deliver_webhooks()
    both, one = receiver.came
    assert len(both.headers["webhook-signature"].split()) == 2
    assert both.is_signed_with(SECRET)
    assert len(one.headers["webhook-signature"].split()) == 1
    assert not one.is_signed_with(SECRET)


def test_a_secret_sealed_with_a_key_from_before_still_signs_and_one_of_an_unknown_key_disables(
    receiver: Receiver, endpoint: WebhookEndpoint, settings: Any
) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another"
    happen("acme")
    deliver_webhooks()
    assert receiver.came[0].is_signed_with(SECRET)
    settings.SECRET_KEY_FALLBACKS = []
    happen("acme", about="v-2")
    deliver_webhooks()
    endpoint.refresh_from_db()
    assert "Rotate the secret" in endpoint.disabled_reason
    assert len(receiver.came) == 1
    made = rotate_secret(actor=make_actor(), endpoint=endpoint, overlap=timedelta(hours=1))
    enable_webhook(actor=make_actor(), endpoint=made.endpoint)
    deliver_webhooks()
    assert len(receiver.came) == 2


def test_a_test_event_is_sent_and_is_in_nobodys_way(receiver: Receiver, endpoint: WebhookEndpoint, sent: Any) -> None:
    ping = ping_webhook(actor=make_actor(), endpoint=endpoint)
    deliver_webhooks()
    body = json.loads(receiver.came[0].body)
    assert (body["type"], receiver.ids) == ("ping", [ping.event_id])


def test_an_event_is_sent_again_by_hand_with_its_id_whatever_came_of_it(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    seq = happen("acme")
    deliver_webhooks()
    again = redeliver(actor=make_actor(), delivery=endpoint.deliveries.get())
    happen("acme", "adapter:version:revoke")
    deliver_webhooks()
    assert receiver.ids.count(f"acme_{seq}") == 2
    assert receiver.came[0].body in {came.body for came in receiver.came[1:]}
    assert again.again_of is not None
    told = {"event": f"acme_{seq}", "kind": "version.approved"}
    assert AuditRecord.objects.get(action="tenant:webhook:redeliver").after == told


def test_while_much_waits_for_an_endpoint_the_rest_waits_in_the_log(
    endpoint: WebhookEndpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_WAITING", 3)
    seqs = [happen("acme", about=f"v-{number}") for number in range(7)]
    assert [collect_events() for _time in range(2)] == [3, 0]
    for _run in range(4):
        deliver_webhooks()
    assert sorted(receiver.ids) == sorted(f"acme_{seq}" for seq in seqs)
    assert len(receiver.ids) == 7


def test_a_receiver_that_is_down_with_much_waiting_takes_no_others_turn(
    receiver: Receiver, endpoint: WebhookEndpoint, other: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_WAITING", 1)
    monkeypatch.setattr(outbox, "_MAX_CURSORS", 1)
    receiver.otherwise = Reply(status=500)
    happen("acme", about="v-1")
    happen("acme", about="v-2")
    deliver_webhooks()
    quick = make_webhook(tenant=endpoint.tenant, url=other.url)
    told = happen("acme", about="v-3")
    for _run in range(3):
        deliver_webhooks()
    assert (states(endpoint), set(states(quick))) == (["pending"], {"delivered"})
    assert other.ids[-1] == f"acme_{told}"


def test_a_long_stretch_of_the_log_that_concerns_nobody_is_passed_at_once(endpoint: WebhookEndpoint) -> None:
    for number in range(5):
        last = happen("acme", "tenant:member:add", about=str(number))
    assert collect_events() == 0
    assert endpoint.cursors.get().seq == last


def test_old_deliveries_are_forgotten_and_what_is_on_its_way_is_not(endpoint: WebhookEndpoint, settings: Any) -> None:
    settings.WEBHOOK_LOG_DAYS = 7
    old, young = timezone.now() - timedelta(days=8), timezone.now() - timedelta(days=6)
    kept = [
        make_delivery(endpoint=endpoint),
        make_delivery(endpoint=endpoint, state="delivered", ended_at=young),
    ]
    gone = make_delivery(endpoint=endpoint, state="parked", ended_at=old)
    WebhookAttempt.objects.create(delivery=gone, number=1, at=old, took_ms=1)
    again = make_delivery(endpoint=endpoint, again_of=gone)
    assert forget_old_deliveries() == 1
    assert set(endpoint.deliveries.values_list("pk", flat=True)) == {each.pk for each in (*kept, again)}


def test_one_worker_sends_at_a_time(receiver: Receiver, endpoint: WebhookEndpoint) -> None:
    Lease.objects.create(name="webhooks", held_until=timezone.now() + timedelta(seconds=30))
    happen("acme")
    deliver_webhooks()
    assert receiver.came == []
    Lease.objects.update(held_until=timezone.now())
    deliver_webhooks()
    assert len(receiver.came) == 1
    assert Lease.objects.get(name="webhooks").held_until <= timezone.now()


def test_trouble_with_one_endpoint_stops_no_other(
    receiver: Receiver, endpoint: WebhookEndpoint, other: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = make_webhook(tenant=endpoint.tenant, url=other.url)
    make: Callable[..., WebhookDelivery] = outbox._delivery

    def fail(to: WebhookEndpoint, record: AuditRecord) -> WebhookDelivery:
        if to.pk == endpoint.pk:
            raise KeyError("unforeseen")
        return make(to, record)

    monkeypatch.setattr(outbox, "_delivery", fail)
    happen("acme")
    deliver_webhooks()
    assert (states(endpoint), states(quick)) == ([], ["delivered"])
    monkeypatch.undo()
    deliver_webhooks()
    assert states(endpoint) == ["delivered"]
