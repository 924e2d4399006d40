"""What holds for webhooks whatever the code does, and what the application's role can do with its grants alone."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from deploy.embedded.postgres import APP
from registry.errors import IllegalTransition, StaleState
from registry.models import WebhookDelivery
from registry.services.webhooks.deliveries import (
    claim_deliveries,
    forget_old_deliveries,
    ping_webhook,
    redeliver,
    settle_attempt,
)
from registry.services.webhooks.endpoints import (
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    remove_webhook,
    rotate_secret,
)
from registry.services.webhooks.outbox import collect_events
from registry.states import DELIVERY_MOVES, DeliveryState
from registry.transitions import move_delivery
from registry.webhooks.sending import Outcome
from tests.factories.registry import make_actor, make_tenant
from tests.factories.webhooks import make_delivery, make_webhook

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
MOVES = [(was, to) for was in DeliveryState for to in DeliveryState if was is not to]


@pytest.fixture
def as_application(postgres: Any, db: None) -> Iterator[None]:
    """Django's connection belongs to the application's role while the test runs."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


def delivery(state: DeliveryState) -> WebhookDelivery:
    made = make_delivery(endpoint=make_webhook(tenant=make_tenant()))
    if state is not DeliveryState.PENDING:
        move_delivery(made, was=DeliveryState.PENDING, to=state, ended_at=timezone.now())
    return made


@pytest.mark.parametrize(("was", "to"), MOVES)
def test_a_delivery_comes_to_one_end_whoever_writes(was: DeliveryState, to: DeliveryState) -> None:
    made = delivery(was)
    ended = None if to is DeliveryState.PENDING else timezone.now()
    change = {"state": to.value, "ended_at": ended}
    if (was, to) in DELIVERY_MOVES:
        WebhookDelivery.objects.filter(pk=made.pk).update(**change)
        return
    with pytest.raises(IntegrityError), transaction.atomic():
        WebhookDelivery.objects.filter(pk=made.pk).update(**change)
    with pytest.raises(IllegalTransition):
        move_delivery(made, was=was, to=to)


def test_who_comes_second_to_an_end_is_told_so() -> None:
    made = delivery(DeliveryState.DELIVERED)
    with pytest.raises(StaleState):
        move_delivery(made, was=DeliveryState.PENDING, to=DeliveryState.PARKED, ended_at=timezone.now())


@pytest.mark.parametrize("change", [{"body": "{}"}, {"event_id": "x"}, {"kind": "node.lost"}, {"object_key": "x"}])
def test_what_is_sent_never_changes(change: dict[str, Any]) -> None:
    made = delivery(DeliveryState.PENDING)
    with pytest.raises(IntegrityError), transaction.atomic():
        WebhookDelivery.objects.filter(pk=made.pk).update(**change)


def test_an_end_has_a_time() -> None:
    made = delivery(DeliveryState.PENDING)
    with pytest.raises(IntegrityError), transaction.atomic():
        WebhookDelivery.objects.filter(pk=made.pk).update(state="delivered")


def test_a_cursor_only_goes_on() -> None:
    cursor = make_webhook(tenant=make_tenant()).cursors.get()
    cursor.seq = 7
    cursor.save(update_fields=["seq"])
    cursor.seq = 6
    with pytest.raises(IntegrityError), transaction.atomic():
        cursor.save(update_fields=["seq"])


def test_an_event_is_delivered_once_to_each_endpoint_but_by_hand() -> None:
    made = delivery(DeliveryState.DELIVERED)
    with pytest.raises(IntegrityError), transaction.atomic():
        make_delivery(endpoint=made.endpoint, event_id=made.event_id)
    make_delivery(endpoint=made.endpoint, event_id=made.event_id, object_key="")


@pytest.mark.django_db(transaction=True)
def test_everything_that_is_done_for_webhooks_works_with_the_grants_of_the_application(
    as_application: None, settings: Any
) -> None:
    actor, tenant = make_actor(), make_tenant(name="acme")
    create_webhook(actor=actor, tenant=None, name="ops", url="https://receiver.example/", kinds=["version.*"])
    made = create_webhook(actor=actor, tenant=tenant, name="ci", url="https://receiver.example/", kinds=["version.*"])
    endpoint = change_webhook(actor=actor, endpoint=made.endpoint, url="https://receiver.example/2", kinds=["node.*"])
    rotate_secret(actor=actor, endpoint=endpoint, overlap=timedelta(hours=1))
    collect_events()
    first, second = (ping_webhook(actor=actor, endpoint=endpoint) for _twice in range(2))
    claims = {claim.delivery_id: claim for claim in claim_deliveries(most=9, busy={})}
    settle_attempt(claim=claims[first.pk], outcome=Outcome(status=204, took_ms=1))
    settle_attempt(claim=claims[second.pk], outcome=Outcome(status=None, took_ms=1, error="no"))
    redeliver(actor=actor, delivery=first)
    settings.WEBHOOK_LOG_DAYS = 0
    assert forget_old_deliveries() == 1
    disable_webhook(actor=actor, endpoint=endpoint, reason="r")
    enable_webhook(actor=actor, endpoint=endpoint, skip_missed=True)
    remove_webhook(actor=actor, endpoint=endpoint)
