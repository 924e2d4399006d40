"""Web's /metrics: for whom it is, and that everything that is promised is in it."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.test import APIClient

from cachecontrol.metrics import NAMES, TIERS
from config.metrics import page
from registry.actors import system_actor
from registry.errors import InvalidInput
from registry.services.tokens import create_platform_token
from registry.states import Scope, TokenKind

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    page._registry.cache_clear()
    yield
    page._registry.cache_clear()


def metrics(**headers: str) -> Any:
    token = create_platform_token(
        actor=system_actor("test"), name="mon", kind=TokenKind.MONITOR, scopes=[Scope.METRICS]
    ).text
    return APIClient().get("/metrics", headers={"Authorization": f"Bearer {token}", **headers})


def test_every_name_that_is_promised_is_there_with_a_text() -> None:
    answer = metrics()
    assert answer.status_code == 200
    families = {family.name: family for family in text_string_to_metric_families(answer.content.decode())}
    assert [name for name in NAMES if not families[name].documentation] == []
    assert families["lorekeeper_fleet_figures_up"].samples[0].value == 1
    assert [sample.labels["tier"] for sample in families["adapter_cache_hit_rate"].samples] == list(TIERS)


def test_prometheus_gets_the_format_that_it_asks_for() -> None:
    plain = metrics(accept="text/plain;version=0.0.4")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    newer = metrics(accept="application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.2,*/*;q=0.1")
    assert newer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert newer.content.rstrip().endswith(b"# EOF")


def test_a_monitors_token_is_good_for_nothing_else() -> None:
    with pytest.raises(InvalidInput):
        create_platform_token(
            actor=system_actor("test"), name="mon", kind=TokenKind.MONITOR, scopes=[Scope.METRICS, Scope.READ]
        )


def test_requests_are_counted_by_pattern_whatever_callers_write(client: Any) -> None:
    for path in ("/api/v1/tenants/acme/adapters", "/api/v1/tenants/globex/adapters", "/no/such/path", "/nor-this"):
        client.get(path)
    client.generic("BREW", "/healthz")
    page_text = metrics().content.decode()
    lines = [line for line in page_text.splitlines() if line.startswith("lorekeeper_http_requests_total{")]
    assert any('route="api/v1/tenants/<str:tenant>/adapters"' in line and 'status="4xx"' in line for line in lines)
    assert any('method="other",route="healthz"' in line for line in lines)
    assert not [word for word in ("acme", "globex", "nor-this", "BREW") if word in page_text]
