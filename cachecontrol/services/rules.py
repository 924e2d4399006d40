"""What a tenant may ask of the gateway: limits, base models, mirroring. The platform says it, the tenant reads it."""

from collections.abc import Iterable
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.models import TenantRules
from registry.actors import Actor
from registry.errors import InvalidInput, PreconditionFailed
from registry.models import BaseModel, Tenant
from registry.permissions import Action, require_in_tenant

MOST: Final = 2**31 - 1
_LIMITS: Final = ("requests_per_minute", "tokens_per_minute", "concurrent_requests", "gpu_ms_per_minute")


@transaction.atomic
def set_serving_rules(
    *,
    actor: Actor,
    tenant: Tenant,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    concurrent_requests: int | None = None,
    gpu_ms_per_minute: int | None = None,
    base_models: Iterable[str] = (),
    allows_shadow: bool = True,
    expected: TenantRules | None = None,
) -> TenantRules:
    """Replace the rules; see ``TenantRules`` for what the fields mean. Quiet when they say that already.

    Raises:
        InvalidInput: names the field: a limit below 1, or a base model that isn't there.
        PreconditionFailed: the rules are not what ``expected`` says any more.

    """
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    rules = _lock(tenant)
    before = shown(rules)
    if expected is not None and before != shown(expected):
        raise PreconditionFailed(_("The rules were changed meanwhile. Read them again and repeat your change."))
    rules.requests_per_minute = requests_per_minute
    rules.tokens_per_minute = tokens_per_minute
    rules.concurrent_requests = concurrent_requests
    rules.gpu_ms_per_minute = gpu_ms_per_minute
    rules.base_models = sorted(set(base_models))
    rules.allows_shadow = allows_shadow
    after = shown(rules)
    if after == before:
        return rules
    _check(rules)
    rules.updated_at = timezone.now()
    rules.save(update_fields=[*after, "updated_at"])
    events.serving_rules_set(actor=actor, tenant=tenant, before=before, after=after)
    return rules


def shown(rules: TenantRules) -> dict[str, Any]:
    """The rules without whose they are."""
    limits = {field: getattr(rules, field) for field in _LIMITS}
    return {**limits, "base_models": list(rules.base_models), "allows_shadow": rules.allows_shadow}


def _lock(tenant: Tenant) -> TenantRules:
    # A row that is not there can't be locked.
    TenantRules.objects.bulk_create([TenantRules(tenant=tenant)], ignore_conflicts=True)
    return TenantRules.objects.select_for_update(of=("self",), no_key=True).get(tenant=tenant)


def _check(rules: TenantRules) -> None:
    for field in _LIMITS:
        limit = getattr(rules, field)
        if limit is not None and not 1 <= limit <= MOST:
            raise InvalidInput(
                _("Between 1 and %(most)d, or nothing for no limit.") % {"most": MOST},
                field=field,
            )
    known = set(BaseModel.objects.filter(name__in=rules.base_models).values_list("name", flat=True))
    missing = sorted(set(rules.base_models) - known)
    if missing:
        raise InvalidInput(_("There is no base model %(names)s.") % {"names": ", ".join(missing)}, field="base_models")
