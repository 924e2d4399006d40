from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import override_settings
from django.utils import timezone

from config.client_addresses import ClientAddressMiddleware
from registry.services.people.sessions import forget_old_sessions
from tests.factories.registry import make_person
from tests.web.conftest import PASSWORD, with_password


@pytest.mark.django_db
def test_sessions_that_are_over_are_forgotten_and_others_stay() -> None:
    person = with_password(make_person())
    for _number in range(2):
        Client().post("/ui/account/login", {"login": person.email, "password": PASSWORD})
    gone = Session.objects.order_by("session_key")[0]
    Session.objects.filter(pk=gone.pk).update(expire_date=timezone.now() - timedelta(seconds=1))
    assert forget_old_sessions() == 1
    assert Session.objects.count() == UserSession.objects.count() == 1
    assert forget_old_sessions() == 0


@pytest.mark.parametrize(("proxy", "is_secure"), [("10.0.0.1", True), ("192.0.2.1", False)])
def test_a_trusted_proxy_says_whether_the_client_came_by_https(proxy: str, is_secure: bool) -> None:
    with override_settings(TRUSTED_PROXIES=["10.0.0.0/8"]):
        through = ClientAddressMiddleware(lambda request: HttpResponse(str(request.is_secure())))
        answer = through(RequestFactory().get("/", REMOTE_ADDR=proxy, headers={"X-Forwarded-Proto": "https"}))
    assert answer.content.decode() == str(is_secure)
