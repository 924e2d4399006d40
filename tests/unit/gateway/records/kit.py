"""Records as gateways make them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from gateway.records import MarkRecord, RequestRecord, ShadowRecord
from gateway.records.segments import Batch
from gateway.records.shapes import REQUESTS, encode

AT = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
VERSION = UUID("11111111-2222-4333-8444-555555555555")


def request_record(request_id: str = "req-1", **facts: Any) -> RequestRecord:
    known: dict[str, Any] = {
        "at": AT,
        "request_id": request_id,
        "tenant": "acme",
        "alias": "support",
        "version_id": VERSION,
        "node": "n1",
        "tier": "gpu",
        "status": 200,
        "error_kind": "",
        "queue_ms": 1,
        "load_ms": 2,
        "ttft_ms": 3,
        "total_ms": 4,
        "prompt_tokens": None,
        "completion_tokens": 6,
        "stream": True,
    }
    return RequestRecord(**(known | facts))


def shadow_record(request_id: str = "req-1", **facts: Any) -> ShadowRecord:
    known: dict[str, Any] = {
        "at": AT,
        "request_id": request_id,
        "tenant": "acme",
        "alias": "support",
        "stable_version_id": VERSION,
        "candidate_version_id": uuid4(),
        "agreement": 0.75,
        "stable_tokens": 8,
        "candidate_tokens": None,
        "stable_ms": 40,
        "candidate_ms": 50,
        "error_kind": "",
    }
    return ShadowRecord(**(known | facts))


def mark_record(request_id: str = "req-1", **facts: Any) -> MarkRecord:
    known: dict[str, Any] = {"at": AT, "tenant": "acme", "request_id": request_id, "name": "quality", "mark": 1.0}
    return MarkRecord(**(known | facts))


def batch(*request_ids: str) -> Batch:
    return Batch(REQUESTS, tuple(REQUESTS.columns), [encode(request_record(each)) for each in request_ids])


def ids(found: Batch | None) -> list[str]:
    """The ids in a batch."""
    return [] if found is None else [line.split(b",")[1].decode().strip('"') for line in found.lines]
