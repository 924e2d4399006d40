"""Cache policies from proposal to roll-back, and what tenants hold by them."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from cachecontrol.errors import PolicyNotPossible
from cachecontrol.models import CachePolicy, LoadRequest, Node, Residency
from cachecontrol.policies import active_policies, active_policy, quota_usage, usage_of_everybody, usage_of_tenant
from cachecontrol.quotas import Resource
from cachecontrol.services.nodes import NodeFacts, change_node
from cachecontrol.services.policies import DEFAULTS, approve_policy, decline_policy, propose_policy, roll_back_policy
from cachecontrol.states import Desired, LoadState, PolicyState
from registry.actors import Actor
from registry.errors import (
    DigestChanged,
    InvalidInput,
    PermissionDenied,
    PreconditionFailed,
    SelfApproval,
    WrongState,
)
from registry.models import Adapter, AuditRecord, BaseModel, Version
from tests.factories.adapters import tiny_description
from tests.factories.cachecontrol import make_node, make_policy, register
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_base_revision,
    make_member,
    make_person,
    make_tenant,
    make_version,
)

pytestmark = pytest.mark.django_db
LOUD = "loading: {queue_limit: 7}\n"


@pytest.fixture
def ada() -> Actor:
    return make_actor(make_person(is_platform_admin=True))


@pytest.fixture
def ben() -> Actor:
    return make_actor(make_person(is_platform_admin=True))


@pytest.fixture
def base(db: None) -> BaseModel:
    return make_base_revision(description=tiny_description().to_json()).base_model


def queue_limit(base: BaseModel) -> int:
    return active_policy(base.pk).document.loading.queue_limit


def tags() -> list[str]:
    found = AuditRecord.objects.filter(chain="platform", action__startswith="platform:cache_policy:")
    return [action.rpartition(":")[2] for action in found.order_by("seq").values_list("action", flat=True)]


def test_a_proposal_holds_once_another_admin_has_approved_it(base: BaseModel, ada: Actor, ben: Actor) -> None:
    assert (active_policy(base.pk).number, queue_limit(base)) == (None, 256)
    policy = make_policy(base_model=base, more=LOUD, by=ada)
    assert (policy.number, policy.state, queue_limit(base)) == (1, PolicyState.PROPOSED, 256)
    with pytest.raises(SelfApproval):
        approve_policy(actor=ada, policy=policy, digest=policy.digest)
    with pytest.raises(DigestChanged):
        approve_policy(actor=ben, policy=policy, digest="0" * 64)
    approve_policy(actor=ben, policy=policy, digest=policy.digest, reason="fine")
    assert (active_policy(base.pk).number, queue_limit(base)) == (1, 7)
    assert approve_policy(actor=ben, policy=policy, digest=policy.digest).state == PolicyState.ACTIVE
    assert tags() == ["propose", "approve"]


def test_what_means_the_same_as_a_living_policy_is_that_policy(base: BaseModel, ada: Actor, ben: Actor) -> None:
    policy = make_policy(base_model=base, more=LOUD, by=ada)
    text = f"# as before\n{LOUD}base_model: {base.name}\n"
    assert propose_policy(actor=ben, base_model=base, text=text) == policy
    assert CachePolicy.objects.get() == policy


def test_the_next_policy_takes_the_place_of_the_last_and_a_roll_back_takes_one_call(
    base: BaseModel, ada: Actor, ben: Actor
) -> None:
    first = make_policy(base_model=base, more=LOUD, by=ada, approver=ben)
    second = make_policy(base_model=base, more="loading: {queue_limit: 9}", by=ada, approver=ben)
    first.refresh_from_db()
    assert (first.state, second.state, queue_limit(base)) == (PolicyState.SUPERSEDED, PolicyState.ACTIVE, 9)
    for _again in range(2):
        assert roll_back_policy(actor=ada, base_model=base, to=1, reason="too loud") == first
    assert queue_limit(base) == 7
    for _again in range(2):
        assert roll_back_policy(actor=ada, base_model=base, to=DEFAULTS) is None
    assert (active_policy(base.pk).number, queue_limit(base)) == (None, 256)
    assert roll_back_policy(actor=ada, base_model=base, to=2) == second
    assert tags() == ["propose", "approve", "propose", "approve", "roll_back", "roll_back", "roll_back"]
    record = AuditRecord.objects.filter(action="platform:cache_policy:roll_back").earliest("seq")
    assert (record.before, record.after) == ({"in_force": 2}, {"in_force": 1, "digest": first.digest})


def test_nothing_comes_into_force_that_nobody_approved(base: BaseModel, ada: Actor, ben: Actor) -> None:
    proposed = make_policy(base_model=base, more=LOUD, by=ada)
    with pytest.raises(WrongState, match="never in force"):
        roll_back_policy(actor=ben, base_model=base, to=proposed.number)
    with pytest.raises(InvalidInput, match="no cache policy 5"):
        roll_back_policy(actor=ben, base_model=base, to=5)
    assert decline_policy(actor=ada, policy=proposed, reason="mine").state == PolicyState.DECLINED
    assert decline_policy(actor=ben, policy=proposed, reason="again").reason == "mine"
    with pytest.raises(WrongState, match="only a proposal"):
        approve_policy(actor=ben, policy=proposed, digest=proposed.digest)
    with pytest.raises(WrongState, match="never in force"):
        roll_back_policy(actor=ben, base_model=base, to=proposed.number)
    assert tags() == ["propose", "decline"]


def test_an_approval_holds_for_the_changes_that_were_looked_at(base: BaseModel, ada: Actor, ben: Actor) -> None:
    seen, other = (make_policy(base_model=base, more=f"loading: {{queue_limit: {n}}}", by=ada) for n in (5, 6))
    approve_policy(actor=ben, policy=other, digest=other.digest, against=DEFAULTS)
    with pytest.raises(PreconditionFailed) as caught:
        approve_policy(actor=ben, policy=seen, digest=seen.digest, against=DEFAULTS)
    assert caught.value.field == "against"
    assert queue_limit(base) == 6
    approve_policy(actor=ben, policy=seen, digest=seen.digest, against=other.number)
    assert queue_limit(base) == 5


def test_only_platform_admins_in_person_propose_and_decide(base: BaseModel, ada: Actor) -> None:
    text, policy = f"base_model: {base.name}", make_policy(base_model=base, by=ada)
    for actor in (make_member(make_tenant()), make_actor()):
        with pytest.raises(PermissionDenied):
            propose_policy(actor=actor, base_model=base, text=text)
        with pytest.raises(PermissionDenied):
            approve_policy(actor=actor, policy=policy, digest=policy.digest)
        with pytest.raises(PermissionDenied):
            decline_policy(actor=actor, policy=policy, reason="no")
    with pytest.raises(PermissionDenied):
        roll_back_policy(actor=make_member(make_tenant()), base_model=base, to=DEFAULTS)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("base_model: another", "base_model"),
        ("[", "text"),
        (r'base_model: "\UFFFFFFFF"', "text"),
        (
            "base_model: x\nadapter_cache: {registry: {require_signature: false}}",
            "adapter_cache.registry.require_signature",
        ),
    ],
)
def test_a_text_that_is_no_policy_of_this_base_is_refused_by_its_field(
    base: BaseModel, ada: Actor, text: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        propose_policy(actor=ada, base_model=base, text=text)
    assert caught.value.field == field


def test_a_policy_that_the_nodes_can_t_keep_is_refused_when_proposed_and_when_approved(
    base: BaseModel, ada: Actor, ben: Actor
) -> None:
    # One slot of the tiny base takes 4 bytes x 64 ranks x 416 values.
    more = "adapter_cache: {gpu_hot: {max_memory_gb: 0.0002}}\n"
    early = make_policy(base_model=base, more=more, by=ada)
    make_node(base_revision=base.revisions.get(), name="n1", engine_kind="tgi")
    make_node(base_revision=base.revisions.get(), name="n2")
    with pytest.raises(PolicyNotPossible, match=r"n2 sets aside 0\.000213 GB for its 2 slots at rank 64") as caught:
        approve_policy(actor=ben, policy=early, digest=early.digest)
    assert caught.value.field == "adapter_cache.gpu_hot.max_memory_gb"
    with pytest.raises(PolicyNotPossible, match="floors of gpu_slots come to 5"):
        make_policy(base_model=base, more="quotas: {tenants: {acme: {gpu_slots: {floor: 5}}}}", by=ada)
    roomy = make_policy(base_model=base, more="adapter_cache: {gpu_hot: {max_memory_gb: 0.0003}}", by=ada, approver=ben)
    assert roomy.state == PolicyState.ACTIVE


def test_a_node_whose_slots_take_more_than_the_policy_allows_is_not_registered(
    base: BaseModel, ada: Actor, ben: Actor
) -> None:
    more = "adapter_cache: {gpu_hot: {max_memory_gb: 0.0002}}\n"
    make_policy(base_model=base, more=more, by=ada, approver=ben)
    with pytest.raises(PolicyNotPossible, match=r"n1 sets aside 0\.000213 GB for its 2 slots at rank 64"):
        register(base_revision=base.revisions.get(), name="n1")
    node = register(base_revision=base.revisions.get(), name="n1", max_rank=32).node
    facts = NodeFacts(
        engine_kind="vllm",
        engine_url=node.engine_url,
        base_revision=node.base_revision,
        gpu_slots=2,
        cpu_slots=4,
        max_rank=64,
        disk_bytes=10**9,
    )
    with pytest.raises(PolicyNotPossible):
        change_node(actor=ada, node=node, facts=facts)


def test_every_base_model_with_nodes_has_something_in_force(base: BaseModel, ada: Actor, ben: Actor) -> None:
    make_policy(base_model=base, more=LOUD, by=ada, approver=ben)
    node = make_node(base_revision=base.revisions.get())
    other = make_node()
    make_base_revision()
    assert active_policy(node).number == 1
    found = active_policies()
    assert {pk: policy.number for pk, policy in found.items()} == {base.pk: 1, other.base_revision.base_model_id: None}


def refused(sql: str, *params: Any) -> str:
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
    return str(caught.value)


def test_the_database_holds_to_what_was_proposed_and_approved(base: BaseModel, ada: Actor, ben: Actor) -> None:
    proposed = make_policy(base_model=base, by=ada)
    active = make_policy(base_model=base, more=LOUD, by=ada, approver=ben)
    update = "UPDATE cachecontrol_cachepolicy SET {} WHERE id = %s"
    decided = "state = 'active', decided_at = now(), decided_by_id = {}"
    for pk, change, words in (
        (proposed.pk, "text = 'x'", "never changes"),
        (proposed.pk, "digest = 'x'", "never changes"),
        (proposed.pk, "state = 'superseded', decided_at = now(), decided_by_id = 1", "does not move"),
        (proposed.pk, "state = 'active'", "cache_policy_decided_by_somebody"),
        (proposed.pk, decided.format(ada.person_id), "cache_policy_four_eyes"),
        (proposed.pk, decided.format(ben.person_id), "cache_policy_one_active"),
        (active.pk, f"decided_by_id = {ada.person_id}", "decided on once"),
        (active.pk, "state = 'proposed'", "does not move"),
    ):
        assert words in refused(update.format(change), pk)
    assert "never deleted" in refused("DELETE FROM cachecontrol_cachepolicy WHERE id = %s", active.pk)
    copy = (
        "INSERT INTO cachecontrol_cachepolicy (base_model_id, number, state, text, document, digest, comment,"
        " proposed_by_id, proposed_at, decided_by_id, decided_at, reason) SELECT base_model_id, 99, 'superseded', text,"
        " document, digest, comment, proposed_by_id, proposed_at, decided_by_id, decided_at, reason"
        " FROM cachecontrol_cachepolicy WHERE id = %s"
    )
    assert "begins as a proposal" in refused(copy, active.pk)


def hold(node: Node, version: Version, desired: Desired, *, is_hot: bool = False) -> None:
    Residency.objects.create(
        node=node, version=version, desired=desired.value, is_hot=is_hot, state_changed_at=timezone.now()
    )


def sized(adapter: Adapter, node: Node, *sizes: int) -> Version:
    """A version with files of these sizes."""
    files = {f"{number}.json": bytes(size) for number, size in enumerate(sizes)}
    return make_version(adapter=adapter, base_revision=node.base_revision, files=files)


def test_a_tenant_s_use_counts_hot_slots_bytes_in_engines_and_bytes_on_disks(ada: Actor, ben: Actor) -> None:
    node = make_node()
    base = node.base_revision.base_model
    second = make_node(base_revision=node.base_revision)
    acme, globex = (make_adapter(tenant=make_tenant(name=name), base_model=base) for name in ("acme", "globex"))
    hot, warm = sized(acme, node, 10, 20), sized(acme, node, 100)
    hold(node, hot, Desired.GPU, is_hot=True)
    hold(second, hot, Desired.GPU, is_hot=True)
    hold(node, warm, Desired.GPU)
    hold(node, sized(acme, node, 1000), Desired.DISK)
    hold(node, sized(acme, node, 9999), Desired.ABSENT)
    hold(second, sized(globex, node, 7), Desired.GPU, is_hot=True)
    elsewhere = make_node()
    line = make_adapter(tenant=acme.tenant, base_model=elsewhere.base_revision.base_model)
    hold(elsewhere, sized(line, elsewhere, 5), Desired.GPU, is_hot=True)
    used = quota_usage(base_model_id=base.pk)
    assert used == {
        "acme": {Resource.GPU_SLOTS: 2, Resource.CPU_BYTES: 160, Resource.DISK_BYTES: 1160},
        "globex": {Resource.GPU_SLOTS: 1, Resource.CPU_BYTES: 7, Resource.DISK_BYTES: 7},
    }
    assert quota_usage(base_model_id=base.pk, tenants=["acme"]) == {"acme": used["acme"]}
    now = timezone.now()
    ask = {
        "pool": node.base_revision.digest,
        "tenant": acme.tenant,
        "sla": "standard",
        "enqueued_at": now,
        "deadline_at": now,
    }
    LoadRequest.objects.create(version=hot, state=LoadState.DONE.value, placed_at=now, ended_at=now, **ask)
    LoadRequest.objects.create(version=warm, **ask)
    initech = make_tenant(name="initech")
    make_policy(base_model=base, more="quotas: {tenants: {initech: {gpu_slots: {ceiling: 1}}}}", by=ada, approver=ben)
    everybody = usage_of_everybody(actor=ada, base_model=base.name)
    assert [(usage.tenant, usage.loads, usage.queued) for usage in everybody] == [
        ("acme", 1, 1),
        ("globex", 0, 0),
        ("initech", 0, 0),
    ]
    mine = usage_of_tenant(tenant=acme.tenant)
    assert {usage.policy.document.base_model: usage.used[Resource.GPU_SLOTS] for usage in mine} == {
        base.name: 2,
        elsewhere.base_revision.base_model.name: 1,
    }
    assert usage_of_tenant(tenant=initech) == ()
