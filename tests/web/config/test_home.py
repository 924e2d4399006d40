from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cachecontrol.models import Node
from cachecontrol.requests import glance as glances
from cachecontrol.requests.glance import glance
from registry.states import Role, VersionState
from tests.factories.cachecontrol import register
from tests.factories.registry import make_actor, make_adapter, make_member, make_person, make_tenant, make_version
from tests.factories.requests import make_request
from tests.web.conftest import SignIn

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=timezone.now().tzinfo)


def test_somebody_without_a_tenant_is_told_what_to_do(sign_in: SignIn) -> None:
    page = sign_in(make_person()).get("/ui/").content.decode()
    assert "You are not a member of any tenant yet" in page


def test_a_reviewer_sees_what_waits_and_an_uploader_does_not(sign_in: SignIn) -> None:
    tenant = make_tenant()
    version = make_version(adapter=make_adapter(tenant=tenant), state=VersionState.CANDIDATE)
    assert str(version) in sign_in(roles={tenant: [Role.REVIEWER]}).get("/ui/").content.decode()
    assert str(version) not in sign_in(roles={tenant: [Role.UPLOADER]}).get("/ui/").content.decode()
    assert str(version) not in sign_in(roles={make_tenant(): [Role.REVIEWER]}).get("/ui/").content.decode()


def test_a_lost_node_is_an_alarm(sign_in: SignIn) -> None:
    register(name="n-lost")
    Node.objects.filter(name="n-lost").update(status="lost")
    page = sign_in(roles={make_tenant(): [Role.OPERATOR]}).get("/ui/").content.decode()
    assert "n-lost" in page
    assert "All nodes are well." not in page


@pytest.mark.parametrize(
    "mark", [{"cordoned": True}, {"draining": True}, {"poisoned": True}, {"recycling_since": timezone.now()}]
)
def test_a_node_that_takes_nothing_new_is_counted_alike_wherever_it_is_counted(
    sign_in: SignIn, mark: dict[str, Any]
) -> None:
    for name in ("n-open", "n-closed"):
        register(name=name)
    Node.objects.filter(name="n-closed").update(**mark)
    assert [node.name for node in Node.objects.all() if node.is_closed] == ["n-closed"]
    browser = sign_in(roles={make_tenant(): [Role.VIEWER]})
    home, fleet = browser.get("/ui/"), browser.get("/ui/fleet")
    assert (home.context["fleet"].closed, fleet.context["count"].closed) == (1, 1)
    assert "1 takes nothing new" in home.content.decode()
    assert "<strong>1</strong> takes nothing new" in fleet.content.decode()
    found = browser.get("/ui/fleet?standing=closed").content.decode()
    assert "n-closed" in found
    assert "n-open" not in found


def test_the_last_hour_stands_beside_the_same_hour_of_yesterday(sign_in: SignIn) -> None:
    tenant = make_tenant(name="acme")
    now = timezone.now() - timedelta(minutes=1)
    for tier, ttft_ms in (("gpu", 100), ("cpu", 200), ("remote", 900)):
        make_request(at=now, tier=tier, ttft_ms=ttft_ms)
    make_request(at=now - timedelta(days=1), tier="disk", ttft_ms=50)
    page = sign_in(roles={tenant: [Role.VIEWER]}).get("/ui/")
    assert page.context["hits"] == (66.7, 0.0)
    assert "900 ms" in page.content.decode()
    assert 'data-chart="line"' in page.content.decode()


def test_requests_of_others_are_not_counted() -> None:
    make_request(at=NOON, tenant="another")
    member = make_member(make_tenant(), Role.VIEWER)
    admin = make_actor(make_person(is_platform_admin=True))
    told = [glance(actor=actor, now=NOON + timedelta(minutes=3)) for actor in (member, admin)]
    assert [each.now.requests for each in told if each] == [0, 1]


def test_each_slice_of_the_hour_has_both_days() -> None:
    admin = make_actor(make_person(is_platform_admin=True))
    for at, ttft_ms in ((NOON, 10), (NOON - timedelta(days=1), 30)):
        make_request(at=at, ttft_ms=ttft_ms)
    told = glance(actor=admin, now=NOON + timedelta(minutes=3))
    assert told is not None
    assert len(told.course) == 12
    assert [(now.ttft_ms, before.ttft_ms) for _at, now, before in told.course if now.requests] == [(10, 30)]


def test_what_takes_too_long_to_count_is_left_out(sign_in: SignIn, monkeypatch: Any) -> None:
    monkeypatch.setattr(glances, "_REQUESTS", "SELECT pg_sleep(5), %(since)s, %(tenants)s")
    monkeypatch.setattr(glances, "_LIMIT_MS", 20)
    page = sign_in(roles={make_tenant(): [Role.VIEWER]}).get("/ui/")
    assert page.status_code == 200
    assert "too many requests" in page.content.decode()


def test_the_start_page_asks_the_database_a_dozen_times_at_most(sign_in: SignIn) -> None:
    tenant = make_tenant()
    for _number in range(7):
        make_version(adapter=make_adapter(tenant=tenant), state=VersionState.CANDIDATE)
    browser = sign_in(roles={tenant: list(Role), make_tenant(): list(Role)})
    browser.get("/ui/")
    with CaptureQueriesContext(connection) as queries:
        browser.get("/ui/")
    asked = [each["sql"] for each in queries if not each["sql"].startswith(("SAVEPOINT", "RELEASE", "SET "))]
    assert len(asked) <= 12, "\n".join(each[:150] for each in asked)
