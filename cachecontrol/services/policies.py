"""Cache policies: one proposes, another approves, whoever has to rolls back. What is in force is read on every pass."""

import hashlib
from typing import Any

import rfc8785
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.errors import PolicyNotPossible
from cachecontrol.models import CachePolicy, Node
from cachecontrol.policies import active_policy, document_of, policies_with_relations
from cachecontrol.policy.checks import PoolNode, find_problems, slots_too_large
from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.parse import parse_policy
from cachecontrol.services.planning.soon import replan_soon
from cachecontrol.states import EngineKind, PolicyState
from cachecontrol.transitions import move_policy
from registry.actors import Actor
from registry.base_models.description import BaseDescription
from registry.base_models.modules import base_modules
from registry.base_models.slots import vllm_slot_bytes
from registry.documents.read import DocumentError
from registry.errors import (
    DigestChanged,
    InvalidInput,
    PermissionDenied,
    PreconditionFailed,
    SelfApproval,
    StaleState,
    WrongState,
)
from registry.models import BaseModel
from registry.permissions import Action, require_on_platform

DEFAULTS = 0


def check_policy(*, actor: Actor, base_model: BaseModel, text: str) -> PolicyDocument:
    """What the text would mean if it was proposed. Raises what ``propose_policy`` raises for it."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    document = _read(text, base_model)
    _require_possible(document, base_model)
    return document


@transaction.atomic
def propose_policy(*, actor: Actor, base_model: BaseModel, text: str, comment: str = "") -> CachePolicy:
    """Propose a policy for a base model. Quiet when one that means the same is proposed or in force.

    Raises:
        InvalidInput: the text is no policy, or one of another base model; names the path.
        PolicyNotPossible: the nodes there are can't give what it asks for.

    """
    proposer_id = _require_person(actor)
    document = _read(text, base_model)
    _require_possible(document, base_model)
    _lock(base_model)
    digest = digest_of(document)
    alive = [PolicyState.PROPOSED.value, PolicyState.ACTIVE.value]
    same = policies_with_relations().filter(base_model=base_model, digest=digest, state__in=alive).first()
    if same is not None:
        return same
    policy = _write(
        base_model=base_model,
        text=text,
        document=document.model_dump(mode="json"),
        digest=digest,
        comment=comment,
        proposed_by_id=proposer_id,
    )
    events.policy_proposed(actor=actor, policy=policy)
    return policy


@transaction.atomic
def approve_policy(
    *, actor: Actor, policy: CachePolicy, digest: str, reason: str = "", against: int | None = None
) -> CachePolicy:
    """Put a proposal in force in place of what is. Quiet when it is in force already.

    ``against`` is the number of what was in force (``DEFAULTS``: nothing approved) when the changes were looked at;
    None: whatever it was.

    Raises:
        PreconditionFailed: something else is in force than what the proposal was compared with.
        SelfApproval: the actor proposed it.
        DigestChanged: ``digest`` is another policy's.
        WrongState: it was declined or superseded.
        PolicyNotPossible: the nodes there are by now can't give what it asks for.

    """
    approver_id = _require_person(actor)
    _lock(policy.base_model)
    found = _again(policy)
    if digest != found.digest:
        raise DigestChanged(_("The digest you approve is not this policy's. Look at it again."), field="digest")
    if found.state == PolicyState.ACTIVE:
        return found
    _require_proposed(found)
    if approver_id == found.proposed_by_id:
        raise SelfApproval(_("You proposed this policy: another platform admin has to approve it."))
    _require_possible(document_of(found), found.base_model)
    before = _supersede(found.base_model)
    if against is not None and against != (before or DEFAULTS):
        raise PreconditionFailed(
            _("Another policy came into force meanwhile. Look at the changes again."), field="against"
        )
    now = timezone.now()
    move_policy(
        found,
        was=PolicyState.PROPOSED,
        to=PolicyState.ACTIVE,
        decided_by_id=approver_id,
        decided_at=now,
        activated_at=now,
        reason=reason,
    )
    events.policy_approved(actor=actor, policy=found, before=before)
    _replan(found.base_model)
    return found


@transaction.atomic
def decline_policy(*, actor: Actor, policy: CachePolicy, reason: str) -> CachePolicy:
    """Refuse a proposal for good; whoever made it may take it back so. Quiet when it is declined already."""
    decider_id = _require_person(actor)
    _lock(policy.base_model)
    found = _again(policy)
    if found.state == PolicyState.DECLINED:
        return found
    _require_proposed(found)
    move_policy(
        found,
        was=PolicyState.PROPOSED,
        to=PolicyState.DECLINED,
        decided_by_id=decider_id,
        decided_at=timezone.now(),
        reason=reason,
    )
    events.policy_declined(actor=actor, policy=found)
    return found


@transaction.atomic
def roll_back_policy(*, actor: Actor, base_model: BaseModel, to: int, reason: str = "") -> CachePolicy | None:
    """Put in force again what was approved earlier, by its number, or the built-in defaults (``DEFAULTS``, None).

    It takes nobody else, and no look at the nodes: it is the way back. Quiet when that is in force already.

    Raises:
        InvalidInput: there is no such policy.
        WrongState: it was never approved.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    _lock(base_model)
    target = _target(base_model, to)
    if target is not None and target.state == PolicyState.ACTIVE:
        return target
    before = _supersede(base_model)
    if target is not None:
        move_policy(target, was=PolicyState.SUPERSEDED, to=PolicyState.ACTIVE, activated_at=timezone.now())
    if target is not None or before is not None:
        events.policy_rolled_back(actor=actor, base_model=base_model, before=before, after=target, reason=reason)
        _replan(base_model)
    return target


def require_slots_fit(node: Node) -> None:
    """Refuse a node that is new, or now another, if its slots take more memory than the policy in force allows.

    Raises ``PolicyNotPossible``.
    """
    document = active_policy(node).document
    if document.adapter_cache.gpu_hot.max_memory_gb is None:
        return
    for problem in slots_too_large(document, [_pool_node(node, weighs=True)]):
        raise PolicyNotPossible(str(problem), field=problem.path)


def digest_of(document: PolicyDocument) -> str:
    """SHA-256 of what the policy means, every default written out, in canonical JSON."""
    return hashlib.sha256(rfc8785.dumps(document.model_dump(mode="json"))).hexdigest()


def _read(text: str, base_model: BaseModel) -> PolicyDocument:
    try:
        document = parse_policy(text)
    except DocumentError as error:
        raise InvalidInput(str(error), field=error.field or "text") from error
    if document.base_model != base_model.name:
        raise InvalidInput(
            _("The policy is for %(said)s and was proposed for %(base)s.")
            % {"said": document.base_model, "base": base_model.name},
            field="base_model",
        )
    return document


def _require_possible(document: PolicyDocument, base_model: BaseModel) -> None:
    nodes = Node.objects.filter(base_revision__base_model=base_model).select_related("base_revision").order_by("name")
    weighs = document.adapter_cache.gpu_hot.max_memory_gb is not None
    problems = find_problems(document, [_pool_node(node, weighs=weighs) for node in nodes])
    if problems:
        raise PolicyNotPossible("; ".join(map(str, problems)), field=problems[0].path)


def _pool_node(node: Node, *, weighs: bool) -> PoolNode:
    """The node for the checks; reading a base's tensors is worth it only where its slots have to be weighed."""
    reserves = weighs and node.engine_kind == EngineKind.VLLM
    return PoolNode(
        name=node.name,
        gpu_slots=node.gpu_slots,
        max_rank=node.max_rank,
        disk_bytes=node.disk_bytes,
        memory_bytes=node.memory_bytes,
        slot_bytes=_slot_bytes(node) if reserves else None,
    )


def _slot_bytes(node: Node) -> int:
    base = BaseDescription.from_json(node.base_revision.description)
    return vllm_slot_bytes(base_modules(base), base, max_rank=node.max_rank)


def _require_person(actor: Actor) -> int:
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person proposes a cache policy or decides on one."))
    return actor.person_id


def _require_proposed(policy: CachePolicy) -> None:
    if policy.state == PolicyState.SUPERSEDED:
        raise WrongState(_("%(policy)s was in force before: roll back to it.") % {"policy": policy})
    if policy.state != PolicyState.PROPOSED:
        raise WrongState(
            _("%(policy)s is %(state)s; only a proposal can be decided on.") % {"policy": policy, "state": policy.state}
        )


def _replan(base_model: BaseModel) -> None:
    """Have every pool of the base model planned by what is in force now."""
    nodes = Node.objects.filter(base_revision__base_model=base_model).order_by()
    for digest in nodes.values_list("base_revision__digest", flat=True).distinct():
        replan_soon(digest)


def _lock(base_model: BaseModel) -> None:
    """Let changes of a base model's policies take turns, by its first policy."""
    list(
        CachePolicy.objects.select_for_update(no_key=True, of=("self",))
        .filter(base_model=base_model, number=1)
        .values_list("pk", flat=True)
    )


def _again(policy: CachePolicy) -> CachePolicy:
    return policies_with_relations().get(pk=policy.pk)


def _write(*, base_model: BaseModel, **facts: Any) -> CachePolicy:  # noqa: ANN401
    newest = CachePolicy.objects.filter(base_model=base_model).aggregate(number=Max("number"))["number"] or 0
    try:
        with transaction.atomic():
            made = CachePolicy.objects.create(
                base_model=base_model, number=newest + 1, proposed_at=timezone.now(), **facts
            )
    except IntegrityError as error:
        # Nothing to take turns by was there yet.
        raise StaleState(_("Somebody else proposed the first policy just now. Try again.")) from error
    return _again(made)


def _supersede(base_model: BaseModel) -> int | None:
    """End what is in force; its number."""
    active = CachePolicy.objects.filter(base_model=base_model, state=PolicyState.ACTIVE.value).first()
    if active is None:
        return None
    move_policy(active, was=PolicyState.ACTIVE, to=PolicyState.SUPERSEDED)
    return active.number


def _target(base_model: BaseModel, number: int) -> CachePolicy | None:
    if number == DEFAULTS:
        return None
    found = policies_with_relations().filter(base_model=base_model, number=number).first()
    if found is None:
        raise InvalidInput(
            _("%(base)s has no cache policy %(number)d.") % {"base": base_model, "number": number}, field="to"
        )
    if found.state not in (PolicyState.ACTIVE, PolicyState.SUPERSEDED):
        raise WrongState(_("%(policy)s was never in force: have it approved.") % {"policy": found})
    return found
