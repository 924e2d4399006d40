import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.parse import parse_policy
from registry.documents.read import MAX_CHARACTERS, DocumentError
from tests.unit.cachecontrol.policy.texts import BASE, FULL, policy


def refusal(text: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        parse_policy(text)
    return caught.value


def test_the_usual_policy_is_read_as_it_is_written() -> None:
    cache = parse_policy(FULL).adapter_cache
    assert (cache.gpu_hot.max_adapters, cache.gpu_hot.max_memory_gb) == (16, 4)
    assert cache.gpu_hot.eviction_policy == "weighted_lru"
    assert (cache.cpu_warm.max_adapters, cache.cpu_warm.max_memory_gb, cache.cpu_warm.ttl_minutes) == (256, 64, 120)
    assert (cache.disk_cache.max_size_gb, cache.disk_cache.verify_checksum) == (500, True)
    assert (cache.registry.require_signature, cache.registry.allow_unapproved_adapter) == (True, False)
    assert len(cache.placement.key_fields) == 4


def test_a_policy_of_its_name_alone_is_the_defaults() -> None:
    assert parse_policy(policy()) == PolicyDocument(base_model=BASE)


def test_what_a_policy_means_can_be_proposed_again_as_json() -> None:
    document = parse_policy(FULL)
    assert parse_policy(json.dumps(document.model_dump(mode="json"))) == document


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a policy is a mapping"),
        ("- base_model: x", "a policy is a mapping"),
        ("base_model: x\nbase_model: y", r"base_model stands here twice \(line 2, column 1\)"),
        (policy("loading:\n  queue_limit: 1\n  queue_limit: 2\n"), r"queue_limit stands here twice \(line 4"),
        (r'base_model: "\U00110000"', r"out of range \(line 1, column 16\)"),
        (r'base_model: "\UFFFFFFFF"', r"out of range \(line 1, column 16\)"),
        (r'base_model: "\ud800"', r"half a character \(line 1, column 13\)"),
        ('"\\ud800": x\n"\\ud800": y', r"half a character \(line 1, column 1\)"),
        (r'{"\ud83d\ude00": 1, "\ud83d\ude00": 2}', "\U0001f600 stands here twice"),
        ("base_model: &a x\ntenants: {x: *a}", "anchors and aliases are refused"),
        ("base_model: !!python/object/apply:os.getcwd []", "tags are refused"),
        ("base_model: !!str x", "tags are refused"),
        ("[" * 5000, "nested too deeply"),
        ("{a: " * 5000, "nested too deeply"),
        ("base_model: x\x00", "special characters"),
        ("base_model: [", "not YAML that can be read"),
        ("1: x", "a key is a text"),
        ("base_model: x\n---\nbase_model: y", "another document"),
        (" " * (MAX_CHARACTERS + 1), "at most 131072 characters"),
    ],
)
def test_what_could_be_read_in_two_ways_or_never_ends_is_refused(text: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        parse_policy(text)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("nonsense: 1", "nonsense"),
        ("adapter_cache: {gpu_hot: {max_adapter: 1}}", "adapter_cache.gpu_hot.max_adapter"),
        ("adapter_cache: {gpu_hot: {max_adapters: 0}}", "adapter_cache.gpu_hot.max_adapters"),
        ("adapter_cache: {gpu_hot: {max_adapters: '16'}}", "adapter_cache.gpu_hot.max_adapters"),
        ("adapter_cache: {gpu_hot: {max_adapters: true}}", "adapter_cache.gpu_hot.max_adapters"),
        ("adapter_cache: {gpu_hot: {max_adapters: 010}}", "adapter_cache.gpu_hot.max_adapters"),
        ("adapter_cache: {gpu_hot: {max_memory_gb: .inf}}", "adapter_cache.gpu_hot.max_memory_gb"),
        ("adapter_cache: {gpu_hot: {max_memory_gb: 1e999}}", "adapter_cache.gpu_hot.max_memory_gb"),
        ("adapter_cache: {gpu_hot: {eviction_policy: fifo}}", "adapter_cache.gpu_hot.eviction_policy"),
        ("adapter_cache: {disk_cache: {high_water: null}}", "adapter_cache.disk_cache.high_water"),
        ("prewarm: {predicted: yes}", "prewarm.predicted"),
        ("prewarm: {schedule: [{at: '24:00', tenant: a, adapter: b, alias: c}]}", "prewarm.schedule[0].at"),
        ("prewarm: {schedule: [{at: 12:30, days: [], tenant: a, adapter: b, alias: c}]}", "prewarm.schedule[0].days"),
        ("quotas: {tenants: {acme: {gpu_slots: {floor: -1}}}}", "quotas.tenants.acme.gpu_slots.floor"),
        ("tenants: {Acme: {sla: standard}}", "tenants.Acme.[key]"),
        ("sla_classes: {standard: {priority_weight: 0}}", "sla_classes.standard.priority_weight"),
    ],
)
def test_a_wrong_value_is_refused_by_its_path(more: str, field: str) -> None:
    error = refusal(policy(more))
    assert error.field == field
    assert field in str(error)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    message = str(refusal(policy("a: 1\nb: 2\nloading: {queue_limit: 0}")))
    assert [part.partition(":")[0] for part in message.split("; ")] == ["loading.queue_limit", "a", "b"]


def test_a_time_of_day_needs_no_quotes() -> None:
    entries = parse_policy(
        policy("prewarm: {schedule: [{at: 12:30, tenant: a, adapter: b, alias: c}]}")
    ).prewarm.schedule
    assert [entry.at for entry in entries] == ["12:30"]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200) | st.text("{}[]:,- \n&*!|>'\"#%@?ab1.", max_size=60))
def test_no_text_does_anything_but_mean_a_policy_or_be_refused(text: str) -> None:
    with contextlib.suppress(DocumentError):
        assert parse_policy(text).base_model


def test_of_many_faults_some_are_told_and_the_rest_is_counted() -> None:
    message = str(refusal(policy("".join(f"k{number}: 1\n" for number in range(1000)))))
    assert "k0: there is no such key" in message
    assert message.endswith("and 980 more")
    assert len(message) < 2000
