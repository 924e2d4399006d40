"""Receivers: who may make them, what is refused, and what the log is told."""

import base64
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from registry.errors import InvalidInput, NameTaken, NotFound, PermissionDenied, PreconditionFailed, WrongState
from registry.models import AuditRecord, Tenant, WebhookDelivery, WebhookEndpoint
from registry.services.webhooks import endpoints
from registry.services.webhooks.deliveries import ping_webhook, redeliver
from registry.services.webhooks.endpoints import (
    MAX_OVERLAP,
    NewSecret,
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    remove_webhook,
    rotate_secret,
)
from registry.states import Role
from registry.webhooks.sealing import open_sealed
from tests.factories.registry import make_actor, make_person, make_tenant
from tests.factories.webhooks import make_delivery, make_webhook

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
URL = "https://receiver.example/events"


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant(name="acme")


def create(tenant: Tenant | None, **facts: Any) -> NewSecret:
    wish = {"actor": make_actor(), "tenant": tenant, "name": "ci", "url": URL, "kinds": ["version.*"], **facts}
    return create_webhook(**wish)


def told(verb: str) -> AuditRecord:
    return AuditRecord.objects.get(action__endswith=f":webhook:{verb}")


def test_a_secret_is_given_once_and_kept_sealed(tenant: Tenant) -> None:
    made = create(tenant)
    secret = base64.b64decode(made.text.removeprefix("whsec_"))
    kept = bytes(WebhookEndpoint.objects.get().secret)
    assert secret not in kept
    assert open_sealed(kept, keys=[django_settings.SECRET_KEY], endpoint=made.endpoint.pk) == secret
    assert made.text not in AuditRecord.objects.get().payload


def test_the_log_says_who_is_told_of_what_and_where(tenant: Tenant) -> None:
    create(tenant)
    record = told("create")
    assert (record.chain, record.action, record.object["name"]) == ("acme", "tenant:webhook:create", "acme/ci")
    assert record.after == {"url": URL, "kinds": ["version.*"]}
    create(None)
    assert AuditRecord.objects.get(action="platform:webhook:create").chain == "platform"


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"name": "Not a name"}, "name"),
        ({"url": "http://receiver.example/"}, "url"),
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"url": "receiver"}, "url"),
        ({"kinds": []}, "kinds"),
        ({"kinds": ["version.*", "nothing.*"]}, "kinds"),
        ({"kinds": ["adapter:version:revoke"]}, "kinds"),
    ],
)
def test_what_can_not_be_is_refused_with_its_field(tenant: Tenant, facts: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create(tenant, **facts)
    assert refused.value.field == field
    assert not WebhookEndpoint.objects.exists()


def test_a_name_is_taken_once_for_each_owner(tenant: Tenant) -> None:
    for owner in (tenant, make_tenant(), None):
        create(owner)
        with pytest.raises(NameTaken):
            create(owner)


def test_an_owner_has_so_many_at_most(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    create(tenant)
    with pytest.raises(InvalidInput):
        create(tenant, name="another")
    create(make_tenant(), name="another")


def test_only_platform_admins_make_and_change_them(tenant: Tenant) -> None:
    member = make_actor(make_person(roles={tenant: list(Role)}))
    admin = make_actor(make_person(is_platform_admin=True))
    hook, platforms = make_webhook(tenant=tenant), make_webhook(tenant=None)
    for endpoint, owner in ((hook, tenant), (platforms, None)):
        acts: list[Any] = [
            lambda actor, owner=owner: create(owner, actor=actor, name="new"),
            lambda actor, it=endpoint: change_webhook(actor=actor, endpoint=it, url=f"{URL}/2", kinds=["node.lost"]),
            lambda actor, it=endpoint: rotate_secret(actor=actor, endpoint=it, overlap=timedelta(0)),
            lambda actor, it=endpoint: ping_webhook(actor=actor, endpoint=it),
            lambda actor, it=endpoint: redeliver(actor=actor, delivery=make_delivery(endpoint=it)),
            lambda actor, it=endpoint: disable_webhook(actor=actor, endpoint=it, reason="r"),
            lambda actor, it=endpoint: enable_webhook(actor=actor, endpoint=it),
            lambda actor, it=endpoint: remove_webhook(actor=actor, endpoint=it),
        ]
        for act in acts:
            with pytest.raises(PermissionDenied):
                act(member)
        for act in acts:
            act(admin)


def test_a_change_holds_from_the_next_delivery_on_and_the_same_again_is_none(tenant: Tenant) -> None:
    endpoint = create(tenant).endpoint
    for _twice in range(2):
        change_webhook(actor=make_actor(), endpoint=endpoint, url=f"{URL}/2", kinds=["node.*", "node.*"])
    record = told("change")
    assert record.before == {"url": URL, "kinds": ["version.*"]}
    assert record.after == {"url": f"{URL}/2", "kinds": ["node.*"]}
    with pytest.raises(PreconditionFailed):
        change_webhook(actor=make_actor(), endpoint=endpoint, url=URL, kinds=["node.*"], expected=endpoint)
    with pytest.raises(InvalidInput):
        change_webhook(actor=make_actor(), endpoint=endpoint, url="https://127.0.0.1/", kinds=["node.*"])


def test_what_is_removed_is_gone_with_all_that_was_sent(tenant: Tenant) -> None:
    endpoint = create(tenant).endpoint
    make_delivery(endpoint=endpoint).attempts.create(number=1, at=timezone.now(), took_ms=1)
    remove_webhook(actor=make_actor(), endpoint=endpoint)
    assert not WebhookEndpoint.objects.exists()
    assert not WebhookDelivery.objects.exists()
    assert told("remove").before == {"url": URL, "kinds": ["version.*"]}
    with pytest.raises(NotFound):
        rotate_secret(actor=make_actor(), endpoint=endpoint, overlap=timedelta(0))


def test_a_secret_is_changed_at_once_or_with_both_for_a_while(tenant: Tenant) -> None:
    made = create(tenant)
    with_both = rotate_secret(actor=make_actor(), endpoint=made.endpoint, overlap=timedelta(hours=2))
    assert with_both.text != made.text
    assert with_both.endpoint.previous_until is not None
    at_once = rotate_secret(actor=make_actor(), endpoint=made.endpoint, overlap=timedelta(0))
    assert (at_once.endpoint.previous_secret, at_once.endpoint.previous_until) == (None, None)
    for overlap in (timedelta(seconds=-1), MAX_OVERLAP + timedelta(seconds=1)):
        with pytest.raises(InvalidInput):
            rotate_secret(actor=make_actor(), endpoint=made.endpoint, overlap=overlap)


def test_disabling_and_enabling_twice_is_told_once(tenant: Tenant) -> None:
    endpoint = create(tenant).endpoint
    for _twice in range(2):
        assert disable_webhook(actor=make_actor(), endpoint=endpoint, reason="moving").disabled_at is not None
    assert told("disable").reason == "moving"
    for _twice in range(2):
        assert enable_webhook(actor=make_actor(), endpoint=endpoint).disabled_at is None
    assert told("enable").after == {"enabled": True, "skips_missed": False}


def test_to_one_that_is_disabled_nothing_is_sent_by_hand_either(tenant: Tenant) -> None:
    endpoint = disable_webhook(actor=make_actor(), endpoint=create(tenant).endpoint, reason="moving")
    acts: list[Any] = [
        lambda: ping_webhook(actor=make_actor(), endpoint=endpoint),
        lambda: redeliver(actor=make_actor(), delivery=make_delivery(endpoint=endpoint)),
    ]
    for act in acts:
        with pytest.raises(WrongState, match="Enable it first"):
            act()
