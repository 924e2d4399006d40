from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cachecontrol.scoring.facts import Facts

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)


def fact(number: int = 1, **changes: Any) -> Facts:
    given: dict[str, Any] = {
        "version_id": UUID(int=number),
        "tenant": "acme",
        "rate_per_h": 10.0,
        "tenant_rate_per_h": 100.0,
        "hits": 5,
        "last_used_at": NOW,
        "size_mib": 80.0,
        "reload_ms": 500.0,
        "weight": 1.0,
        "is_retiring": False,
        "clock": 0.0,
    }
    return Facts(**{**given, **changes})
