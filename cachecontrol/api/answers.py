"""Shapes of answers, for the OpenAPI document. What is really answered is made in ``documents``; a test compares."""

from typing import Any

from rest_framework import serializers

from cachecontrol.requests.usage import UsageBy
from cachecontrol.states import (
    DemandState,
    Desired,
    EngineKind,
    EvictionReason,
    NodeStatus,
    Observed,
    PolicyState,
    Tier,
)


class ResidencyAnswer(serializers.Serializer[Any]):
    node = serializers.CharField()
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    version_id = serializers.UUIDField()
    engine_name = serializers.CharField()
    desired = serializers.ChoiceField(choices=[state.value for state in Desired])
    observed = serializers.ChoiceField(choices=[state.value for state in Observed])
    planned_tier = serializers.ChoiceField(choices=[*(tier.value for tier in Tier), Desired.ABSENT.value])
    tier = serializers.ChoiceField(choices=[tier.value for tier in Tier], allow_null=True)
    tier_is_estimate = serializers.BooleanField(help_text="Worked out from what was sent to the engine.")
    generation = serializers.IntegerField()
    message = serializers.CharField()
    load_ms = serializers.IntegerField(allow_null=True)
    fetch_ms = serializers.IntegerField(allow_null=True)
    fetched_bytes = serializers.IntegerField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    updated_at = serializers.DateTimeField()


class DriftAnswer(serializers.Serializer[Any]):
    unknown = serializers.ListField(child=serializers.CharField(), help_text="Names that nobody asked for.")
    mismatched = serializers.ListField(child=serializers.CharField(), help_text="Names it has from another path.")


class NodeAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    engine_kind = serializers.ChoiceField(choices=[kind.value for kind in EngineKind])
    engine_url = serializers.CharField()
    base_model = serializers.CharField()
    base_revision = serializers.CharField()
    gpu_slots = serializers.IntegerField()
    cpu_slots = serializers.IntegerField()
    max_rank = serializers.IntegerField()
    disk_bytes = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    status = serializers.ChoiceField(choices=[status.value for status in NodeStatus])
    engine_healthy = serializers.BooleanField()
    tainted = serializers.BooleanField(help_text="A load failed inside the engine: it is to be restarted.")
    poisoned = serializers.BooleanField(help_text="The engine's answers can't be trusted.")
    restartable = serializers.BooleanField(help_text="Its agent can restart the engine.")
    stuck = serializers.BooleanField(help_text="The engine needs a restart that somebody has to give it.")
    cordoned = serializers.BooleanField()
    draining = serializers.BooleanField()
    recycling_since = serializers.DateTimeField(allow_null=True)
    mismatches = serializers.IntegerField(help_text="How often the engine had a version from a wrong path.")
    drift = DriftAnswer()
    disk_used_bytes = serializers.IntegerField(allow_null=True)
    disk_free_bytes = serializers.IntegerField(allow_null=True)
    boot_id = serializers.CharField(allow_null=True)
    last_seen_at = serializers.DateTimeField(allow_null=True)
    residencies = ResidencyAnswer(many=True)


class NewNodeAnswer(NodeAnswer):
    token = serializers.CharField(help_text="The node's token; told this once.")


class LimitsAnswer(serializers.Serializer[Any]):
    """What the policy sets; the agent's own settings bound it."""

    disk_bytes = serializers.IntegerField()
    high_water = serializers.FloatField()
    low_water = serializers.FloatField()
    disk_ttl_s = serializers.FloatField(allow_null=True)
    scrub_bytes_per_s = serializers.IntegerField()
    concurrent_downloads = serializers.IntegerField()
    origin_timeout_s = serializers.FloatField()
    guaranteed = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Names whose files nobody else may push out; left out where they are as they were.",
    )
    expendable = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Names whose files go first when the disk is short, in this order; left out like guaranteed.",
    )


class ReportedAnswer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="Names to take out of the engine: not asked for, or not ours."
    )
    recycle = serializers.CharField(
        allow_null=True, help_text="The boot id of the engine's life that is to end by a restart."
    )
    resend = serializers.BooleanField(help_text="The next report has to list everything.")
    limits = LimitsAnswer()


class CachePolicyAnswer(serializers.Serializer[Any]):
    base_model = serializers.CharField()
    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=[state.value for state in PolicyState])
    digest = serializers.CharField(help_text="Of what it means; approving it takes this.")
    comment = serializers.CharField()
    proposed_by = serializers.CharField()
    proposed_at = serializers.DateTimeField()
    decided_by = serializers.CharField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()
    activated_at = serializers.DateTimeField(allow_null=True, help_text="When it last came into force.")


class WholeCachePolicyAnswer(CachePolicyAnswer):
    text = serializers.CharField(help_text="The YAML as it was proposed.")
    document = serializers.DictField(help_text="What it means, every default written out.")
    in_force = serializers.IntegerField(help_text="The number of what is in force; 0: the built-in defaults.")


class PolicyInForceAnswer(serializers.Serializer[Any]):
    base_model = serializers.CharField()
    number = serializers.IntegerField(help_text="0: the built-in defaults.")
    document = serializers.DictField()


class PolicyChangeAnswer(serializers.Serializer[Any]):
    path = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class PolicyDiffAnswer(serializers.Serializer[Any]):
    base_model = serializers.CharField()
    before = serializers.IntegerField(help_text="0: the built-in defaults.")
    after = serializers.IntegerField()
    changes = PolicyChangeAnswer(many=True)


class AmountAnswer(serializers.Serializer[Any]):
    floor = serializers.IntegerField(help_text="Guaranteed.")
    ceiling = serializers.IntegerField(allow_null=True, help_text="null: as much as there is.")
    used = serializers.IntegerField()


class RateAnswer(serializers.Serializer[Any]):
    limit = serializers.FloatField(allow_null=True, help_text="null: no limit.")
    used = serializers.IntegerField()


class CacheQuotaAnswer(serializers.Serializer[Any]):
    base_model = serializers.CharField()
    tenant = serializers.CharField()
    sla = serializers.CharField()
    priority_weight = serializers.IntegerField()
    wait_s = serializers.FloatField(help_text="How long a request waits for a cold version.")
    gpu_slots = AmountAnswer()
    cpu_bytes = AmountAnswer()
    disk_bytes = AmountAnswer()
    loads_per_minute = RateAnswer()
    queue_places = RateAnswer()


class RecordedAnswer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()


class DemandAnswer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=[state.value for state in DemandState])
    message = serializers.CharField()
    code = serializers.CharField(help_text="Why it isn't loaded, in one word where there is one: `disk_full`, say.")
    tier = serializers.ChoiceField(
        choices=["disk", "remote"], allow_null=True, help_text="Where it is while it isn't loaded, if that is known."
    )
    position = serializers.IntegerField(allow_null=True, help_text="Its place in the load queue, from 1.")
    retry_after_s = serializers.IntegerField(allow_null=True)
    wait_s = serializers.FloatField(
        allow_null=True, help_text="How long a request may wait for it, by the tenant's class of service; seconds."
    )


class EvictionAnswer(serializers.Serializer[Any]):
    node = serializers.CharField()
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    tier = serializers.ChoiceField(choices=["gpu", "cpu", "disk"])
    to_tier = serializers.ChoiceField(choices=["cpu", "disk", "remote"])
    reason = serializers.ChoiceField(choices=[reason.value for reason in EvictionReason])
    policy = serializers.CharField(allow_null=True, help_text="The scoring policy, where scores decided.")
    policy_number = serializers.IntegerField(allow_null=True)
    score = serializers.FloatField(allow_null=True, help_text="The smallest is evicted first.")
    factors = serializers.DictField(child=serializers.FloatField())
    runner_up = serializers.CharField(allow_null=True, help_text="Who would have gone instead, if you may see it.")
    runner_up_score = serializers.FloatField(allow_null=True)
    asked_by = serializers.CharField(allow_null=True, help_text="The tenant that needed the room, if you may see it.")
    at = serializers.DateTimeField()


class WaitingLoadAnswer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=["queued", "placed"])
    node = serializers.CharField(allow_null=True)
    waiting = serializers.IntegerField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()


class PlacementAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    requests_per_hour = serializers.FloatField(help_text="Decayed: half of it is older than the policy's half-life.")
    hits = serializers.IntegerField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    load = WaitingLoadAnswer(allow_null=True)
    nodes = ResidencyAnswer(many=True)
    evictions = EvictionAnswer(many=True)


class PercentilesAnswer(serializers.Serializer[Any]):
    p50 = serializers.IntegerField()
    p95 = serializers.IntegerField()
    p99 = serializers.IntegerField()


class TiersAnswer(serializers.Serializer[Any]):
    gpu = serializers.IntegerField()
    cpu = serializers.IntegerField()
    disk = serializers.IntegerField()
    remote = serializers.IntegerField()


class UsageFiguresAnswer(serializers.Serializer[Any]):
    requests = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Not by the client's own doing; being turned away for a limit counts.")
    fallbacks = serializers.IntegerField(help_text="Answered by the stable version or the base model instead.")
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    engine_ms = serializers.IntegerField(help_text="What it cost: the time that engines spent on it.")
    tiers = TiersAnswer(help_text="Where the versions were when requests for them came.")
    gpu_hit_rate = serializers.FloatField(allow_null=True, help_text="The share of `gpu` in these.")
    ttft_ms = PercentilesAnswer(allow_null=True, help_text="Milliseconds to the first byte.")
    shadow_requests = serializers.IntegerField(help_text="Mirrored to a candidate; in no other figure.")
    shadow_engine_ms = serializers.IntegerField(help_text="What these cost.")


class UsageGroupAnswer(UsageFiguresAnswer):
    name = serializers.CharField(allow_blank=True, help_text="Empty: the requests came to none.")


class UsageAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    by = serializers.ChoiceField(choices=[by.value for by in UsageBy])
    total = UsageFiguresAnswer()
    groups = UsageGroupAnswer(many=True, help_text="The costliest first, or the days in order.")
    left_out = serializers.IntegerField(help_text="How many smaller groups there are.")
