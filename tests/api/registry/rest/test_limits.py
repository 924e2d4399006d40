import logging
from typing import Any

import pytest
from django.core.cache import caches
from django.core.cache.backends.redis import RedisCache
from rest_framework.test import APIClient

from registry.api.rest import limits
from registry.states import Role
from tests.api.registry.conftest import Caller

URL = "/api/v1/whoami"


@pytest.fixture
def two_a_minute(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "person": 2, "anonymous": 2}
    monkeypatch.setattr("registry.api.rest.limits.time.time", lambda: 6000.0)
    caches["default"].clear()


def test_a_token_over_its_rate_is_told_when_to_come_back(as_role: Caller, two_a_minute: None) -> None:
    client = as_role(Role.VIEWER)
    assert [client.get(URL).status_code for _ in range(2)] == [200, 200]
    refused = client.get(URL)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert refused["Content-Type"] == "application/problem+json"
    assert refused["Retry-After"] == "60"
    assert as_role(Role.AUDITOR).get(URL).status_code == 200


def test_the_rate_slides(as_role: Caller, two_a_minute: None, monkeypatch: pytest.MonkeyPatch) -> None:
    client = as_role(Role.VIEWER)
    assert [client.get(URL).status_code for _ in range(3)] == [200, 200, 429]
    monkeypatch.setattr("registry.api.rest.limits.time.time", lambda: 6060.0)
    assert client.get(URL).status_code == 429
    monkeypatch.setattr("registry.api.rest.limits.time.time", lambda: 6091.0)
    assert [client.get(URL).status_code for _ in range(3)] == [200, 200, 429]
    monkeypatch.setattr("registry.api.rest.limits.time.time", lambda: 6300.0)
    assert client.get(URL).status_code == 200


def test_callers_without_a_token_share_a_rate_by_address(db: None, two_a_minute: None) -> None:
    client: Any = APIClient()
    assert [client.get("/api/v1/keys").status_code for _ in range(3)] == [200, 200, 429]
    assert client.get("/api/v1/keys", REMOTE_ADDR="10.0.0.9").status_code == 200


def test_addresses_of_the_store_have_no_rate_and_those_of_the_hub_have_the_tokens(
    as_role: Caller, two_a_minute: None
) -> None:
    client = as_role(Role.VIEWER)
    assert {client.get("/store/ticket").status_code for _ in range(4)} == {403}
    assert [client.get("/api/whoami-v2").status_code for _ in range(3)] == [200, 200, 429]


def test_zero_means_no_limit(as_role: Caller, two_a_minute: None, settings: Any) -> None:
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "person": 0}
    assert {as_role(Role.VIEWER).get(URL).status_code for _ in range(5)} == {200}


def test_rates_are_counted_in_valkey(valkey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cache", RedisCache(valkey.url, {"OPTIONS": {"socket_timeout": 5}}))
    counters = limits.Counters()
    waits = [counters.take("rate:test", limit=3, now=6030.0) for _ in range(5)]
    assert waits == [None, None, None, 30.0, 30.0]


def test_while_valkey_is_away_nothing_is_limited_and_it_is_said_once(
    as_role: Caller, two_a_minute: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = RedisCache("redis://127.0.0.1:1/0", {"OPTIONS": {"socket_connect_timeout": 0.25}})
    monkeypatch.setattr(limits, "cache", nowhere)
    monkeypatch.setattr(limits, "COUNTERS", limits.Counters())
    with caplog.at_level(logging.WARNING, logger="registry.api.rest.limits"):
        assert {as_role(Role.VIEWER).get(URL).status_code for _ in range(4)} == {200}
    assert [record.message[:29] for record in caplog.records] == ["the cache does not answer, so"]
