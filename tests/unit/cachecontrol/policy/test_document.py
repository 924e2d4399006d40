from datetime import UTC, datetime

import pytest

from cachecontrol.policy.cache import KeyField
from cachecontrol.policy.parse import parse_policy
from cachecontrol.policy.tenants import ScheduledPrewarm
from registry.documents.read import DocumentError
from tests.unit.cachecontrol.policy.texts import FULL, policy

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)  # a Saturday


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ("tenant_id", "one would get the other's weights"),
        ("adapter_id", "taken for one another"),
        ("adapter_version", "cached weights of an old one"),
        ("base_model_revision", "served on another"),
    ],
)
def test_a_cache_key_without_one_of_its_fields_is_refused_with_the_reason(field: str, why: str) -> None:
    rest = [each for each in ("tenant_id", "adapter_id", "adapter_version", "base_model_revision") if each != field]
    text = policy(f"adapter_cache: {{placement: {{key_fields: [{', '.join(rest)}]}}}}")
    with pytest.raises(DocumentError, match=f"has to contain {field}: .*{why}") as caught:
        parse_policy(text)
    assert caught.value.field == "adapter_cache.placement.key_fields"


@pytest.mark.parametrize(
    ("was", "is_now", "why"),
    [
        ("allow_unapproved_adapter: false", "allow_unapproved_adapter: true", "only an approved, signed"),
        ("require_signature: true", "require_signature: false", "only signed versions are loaded"),
        ("verify_checksum: true", "verify_checksum: false", "digests it hasn't checked"),
    ],
)
def test_what_would_break_an_invariant_is_refused_with_the_reason(was: str, is_now: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        parse_policy(FULL.replace(was, is_now))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("adapter_cache: {disk_cache: {high_water: 0.5, low_water: 0.5}}", "low_water .* has to be below high_water"),
        ("adapter_cache: {cpu_warm: {high_water: 0.5}}", "give both or neither"),
        ("adapter_cache: {gpu_hot: {high_water: 0.9, low_water: 0.5}}", "gpu_hot.high_water: there is no such key"),
        ("quotas: {default: {loads_per_minute: 0.01}}", "loads_per_minute: .* greater than or equal to 0.0166"),
        ("loading: {origin_timeout_s: 0.5}", "origin_timeout_s: .* greater than or equal to 1"),
        ("loading: {origin_timeout_s: 3601}", "origin_timeout_s: .* less than or equal to 3600"),
        ("loading: {concurrent_downloads: 17}", "concurrent_downloads: .* less than or equal to 16"),
        ("adapter_cache: {gpu_hot: {max_adapters: 9}, cpu_warm: {max_adapters: 8}}", "at least gpu_hot.max_adapters"),
        (
            f"adapter_cache: {{placement: {{key_fields: [tenant_id, {', '.join(KeyField)}]}}}}",
            "twice",
        ),
        ("quotas: {tenants: {acme: {gpu_slots: {floor: 3, ceiling: 2}}}}", "floor .3. is above ceiling .2."),
        ("quotas: {default: {disk_mb: {floor: 1}}}", "guarantees are given by name"),
        ("sla_classes: {gold: {}}", "sla_classes needs standard"),
        ("tenants: {acme: {sla: gold}}", "tenants.acme.sla is gold; there is only critical, premium, standard"),
        ("pins: [{tenant: a, adapter: b}]", "either an alias or a version"),
        ("pins: [{tenant: a, adapter: b, alias: c, version: v1}]", "either an alias or a version"),
        ("pins: [{tenant: a, adapter: b, alias: c}, {tenant: a, adapter: b, alias: c}]", "the same twice"),
        ("scoring: {weighted_lru: {idle: 0, memory: 0, hits: 0, priority: 0, reload: 0}}", "at least one weight"),
    ],
)
def test_what_contradicts_itself_is_refused(more: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        parse_policy(policy(more))


def test_a_pin_may_name_the_default_of_an_adapter() -> None:
    document = parse_policy(policy("pins: [{tenant: a, adapter: b, alias: b.default}]"))
    assert [pin.alias for pin in document.pins] == ["b.default"]


@pytest.mark.parametrize(
    ("at", "days", "due"),
    [
        ("11:00", ("sat",), datetime(2026, 7, 4, 11, tzinfo=UTC)),
        ("12:00", ("sat",), NOW),
        ("13:00", ("sat",), datetime(2026, 6, 27, 13, tzinfo=UTC)),
        ("13:00", ("mon", "fri"), datetime(2026, 7, 3, 13, tzinfo=UTC)),
        ("00:00", ("sun",), datetime(2026, 6, 28, tzinfo=UTC)),
    ],
)
def test_a_schedule_knows_when_it_was_last_due(at: str, days: tuple[str, ...], due: datetime) -> None:
    entry = ScheduledPrewarm.model_validate(
        {"at": at, "days": days, "tenant": "a", "adapter": "b", "alias": "c"}, strict=False
    )
    assert entry.last_due(NOW) == due
