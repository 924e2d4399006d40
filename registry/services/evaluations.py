"""What a tenant's versions are evaluated on, and the gates they have to keep to."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import InvalidInput, NotFound
from registry.evaluation import Gates, examples_digest, examples_json, parse_examples
from registry.models import Adapter, EvaluationGates, EvaluationSet, Tenant
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant

Unchanged = Callable[[EvaluationSet | None], None]
UnchangedGates = Callable[[Gates], None]


@transaction.atomic
def keep_evaluation_set(
    *,
    actor: Actor,
    tenant: Tenant,
    name: str,
    examples: Sequence[object],
    adapter: str | None = None,
    unchanged: Unchanged | None = None,
) -> EvaluationSet:
    """Make or replace a set; quiet when it is like that already.

    Args:
        actor: who asks.
        tenant: whose.
        name: of the set.
        examples: rows as ``registry.evaluation.parse_examples`` reads them.
        adapter: the adapter whose versions are asked these; None for every adapter without a set of its own.
        unchanged: called with the set as it is (None: there is none) while it is locked; raises to refuse the change.

    Raises:
        InvalidInput: names the example that can't be used, or the adapter that has a set already.

    """
    require_in_tenant(actor, Action.MANAGE_EVALUATION, tenant.pk)
    check_name(name, field="name")
    read = parse_examples(examples)
    _lock(tenant)
    line = _adapter(tenant, adapter)
    known = EvaluationSet.objects.select_related("tenant", "adapter").filter(tenant=tenant, name=name).first()
    if unchanged is not None:
        unchanged(known)
    _require_alone(tenant, name, line)
    digest = examples_digest(read)
    if known is not None and (known.digest, known.adapter_id) == (digest, line.pk if line else None):
        return known
    before = None if known is None else events.evaluation_set_facts(known)
    kept = known or EvaluationSet(tenant=tenant, name=name)
    kept.adapter, kept.examples, kept.digest, kept.changed_at = line, examples_json(read), digest, timezone.now()
    kept.save(update_fields=None if known is None else ["adapter", "examples", "digest", "changed_at"])
    events.evaluation_set_kept(actor=actor, kept=kept, before=before)
    return kept


@transaction.atomic
def remove_evaluation_set(*, actor: Actor, tenant: Tenant, name: str, unchanged: Unchanged | None = None) -> None:
    """Remove a set. Raises ``NotFound`` when there is none."""
    require_in_tenant(actor, Action.MANAGE_EVALUATION, tenant.pk)
    _lock(tenant)
    known = EvaluationSet.objects.select_related("tenant", "adapter").filter(tenant=tenant, name=name).first()
    if known is None:
        raise NotFound(_("There is no evaluation set named %(name)s.") % {"name": name}, field="name")
    if unchanged is not None:
        unchanged(known)
    before = events.evaluation_set_facts(known)
    known.delete()
    events.evaluation_set_removed(actor=actor, tenant=tenant, name=name, before=before)


@transaction.atomic
def set_evaluation_gates(
    *, actor: Actor, tenant: Tenant, gates: dict[str, Any], unchanged: UnchangedGates | None = None
) -> Gates:
    """Set all gates at once: those that are not named are open. Quiet when they are like that already.

    Raises:
        InvalidInput: names the gate that is unknown or has a bound that makes no sense.

    """
    require_in_tenant(actor, Action.MANAGE_EVALUATION, tenant.pk)
    wanted = Gates.from_json(gates)
    _lock(tenant)
    kept = EvaluationGates.objects.filter(tenant=tenant).first()
    known = Gates() if kept is None else Gates.from_json(kept.gates)
    if unchanged is not None:
        unchanged(known)
    if known == wanted:
        return known
    if kept is None:
        EvaluationGates.objects.create(tenant=tenant, gates=wanted.to_json(), changed_at=timezone.now())
    else:
        kept.gates, kept.changed_at = wanted.to_json(), timezone.now()
        kept.save(update_fields=["gates", "changed_at"])
    events.evaluation_gates_set(actor=actor, tenant=tenant, before=known.to_json(), after=wanted.to_json())
    return wanted


def _lock(tenant: Tenant) -> None:
    """One change of a tenant's evaluation at a time: there may be no row yet that could be locked."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"evaluation:{tenant.pk}"])


def _adapter(tenant: Tenant, name: str | None) -> Adapter | None:
    if name is None:
        return None
    adapter = Adapter.objects.filter(tenant=tenant, name=name).first()
    if adapter is None:
        raise InvalidInput(
            _("Tenant %(tenant)s has no adapter named %(name)s.") % {"tenant": tenant, "name": name}, field="adapter"
        )
    return adapter


def _require_alone(tenant: Tenant, name: str, adapter: Adapter | None) -> None:
    other = EvaluationSet.objects.filter(tenant=tenant, adapter=adapter).exclude(name=name).first()
    if other is None:
        return
    whom = _("Adapter %(adapter)s") % {"adapter": adapter.name} if adapter else _("The tenant as a whole")
    raise InvalidInput(
        _("%(whom)s has the evaluation set %(name)s already: change that one, or remove it.")
        % {"whom": whom, "name": other.name},
        field="adapter",
    )
