"""Webhooks under several real connections: nothing is lost, nothing is made twice, nobody waits in a circle."""

import threading
from typing import Any

import pytest
from django.db import connections

from registry.audit import append_record
from registry.errors import InvalidInput, LorekeeperError
from registry.models import WebhookDelivery, WebhookEndpoint
from registry.services.webhooks import endpoints
from registry.services.webhooks.deliveries import Claim, claim_deliveries, settle_attempt
from registry.services.webhooks.endpoints import (
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    remove_webhook,
)
from registry.services.webhooks.outbox import collect_events
from registry.webhooks.sending import Outcome
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import make_actor, make_tenant
from tests.factories.webhooks import make_delivery, make_webhook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]


def happen(chain: str, about: str) -> int:
    object_ = {"kind": "version", "id": about, "name": about}
    return append_record(actor=make_actor(), chain=chain, action="adapter:version:approve", object_=object_)


def test_whatever_happens_while_several_collect_becomes_one_delivery_each() -> None:
    tenant = make_tenant(name="acme")
    hooks = [make_webhook(tenant=tenant), make_webhook(tenant=None, chains=["platform", "acme"])]
    done = threading.Event()
    happened: list[int] = []

    def change() -> None:
        try:
            happened.extend(happen("acme", str(number)) for number in range(60))
        finally:
            done.set()

    def collect() -> None:
        while not done.is_set():
            collect_events()

    assert errors_in(race(change, collect, collect, collect)) == []
    collect_events()
    for hook in hooks:
        ids = list(hook.deliveries.order_by("pk").values_list("event_id", flat=True))
        assert ids == [f"acme_{seq}" for seq in happened]


def test_an_endpoint_made_while_things_happen_is_told_of_all_behind_its_own_record() -> None:
    tenant = make_tenant(name="acme")
    seqs: list[int] = []

    def change() -> None:
        seqs.extend(happen("acme", str(number)) for number in range(30))

    def make() -> WebhookEndpoint:
        wish = {"name": "ci", "url": "https://receiver.example/", "kinds": ["version.*"]}
        return create_webhook(actor=make_actor(), tenant=tenant, **wish).endpoint  # type: ignore[arg-type]

    _changed, made = race(change, make)
    assert isinstance(made, WebhookEndpoint)
    began = made.cursors.get().seq
    collect_events()
    assert list(made.deliveries.order_by("pk").values_list("event_id", flat=True)) == [
        f"acme_{seq}" for seq in seqs if seq > began
    ]


def test_a_delivery_is_given_out_once_however_many_ask() -> None:
    endpoint = make_webhook(tenant=make_tenant())
    made = {make_delivery(endpoint=endpoint).pk for _each in range(8)}
    given: list[Any] = race(*[lambda: claim_deliveries(most=16, busy={})] * 4)
    assert errors_in(given) == []
    claims = [claim.delivery_id for claims in given for claim in claims]
    assert len(claims) == len(set(claims))
    assert set(claims) == made


def test_an_answer_that_comes_twice_ends_a_delivery_once() -> None:
    endpoint = make_webhook(tenant=make_tenant())
    make_delivery(endpoint=endpoint)
    (first,) = claim_deliveries(most=1, busy={})
    WebhookDelivery.objects.update(next_at="2020-01-01T00:00:00Z")
    (second,) = claim_deliveries(most=1, busy={})
    outcomes = {first: Outcome(status=204, took_ms=1), second: Outcome(status=500, took_ms=1)}
    settled = race(*[lambda claim=claim: settle_attempt(claim=claim, outcome=outcomes[claim]) for claim in outcomes])
    assert errors_in(settled) == []
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.attempts.count()) == ("delivered", 2)


def test_an_endpoint_is_changed_and_removed_while_its_deliveries_are_made_and_settled() -> None:
    tenant = make_tenant(name="acme")
    for number in range(6):
        endpoint = make_webhook(tenant=tenant)
        for each in range(4):
            happen("acme", f"{number}-{each}")
        collect_events()
        claims = claim_deliveries(most=4, busy={})

        def settle(claims: list[Claim] = claims) -> None:
            for claim in claims:
                settle_attempt(claim=claim, outcome=Outcome(status=410, took_ms=1))

        def steer(endpoint: WebhookEndpoint = endpoint) -> None:
            disable_webhook(actor=make_actor(), endpoint=endpoint, reason="r")
            enable_webhook(actor=make_actor(), endpoint=endpoint, skip_missed=True)
            url = "https://receiver.example/2"
            change_webhook(actor=make_actor(), endpoint=endpoint, url=url, kinds=["version.*"])

        def remove(endpoint: WebhookEndpoint = endpoint) -> None:
            remove_webhook(actor=make_actor(), endpoint=endpoint)

        def collect(number: int = number) -> None:
            happen("acme", f"{number}-more")
            collect_events()

        wrong = errors_in(race(settle, steer, remove, collect, collect))
        assert [error for error in wrong if not isinstance(error, LorekeeperError)] == []
        assert not WebhookEndpoint.objects.exists()


def test_two_that_are_made_at_once_keep_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    tenant = make_tenant()

    def make(name: str) -> object:
        wish = {"url": "https://receiver.example/", "kinds": ["version.*"]}
        return create_webhook(actor=make_actor(), tenant=tenant, name=name, **wish)  # type: ignore[arg-type]

    errors = errors_in(race(*[lambda name=name: make(name) for name in ("a", "b", "c")]))
    assert [type(error) for error in errors] == [InvalidInput] * 2
    connections.close_all()
