from django.db import transaction
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import NameTaken, NotFound
from registry.models import Adapter, BaseModel, Tenant
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant


@transaction.atomic
def create_adapter(*, actor: Actor, tenant: Tenant, name: str, base_model: str, description: str = "") -> Adapter:
    require_in_tenant(actor, Action.CREATE_ADAPTER, tenant.pk)
    base = BaseModel.objects.filter(name=base_model).first()
    if base is None:
        raise NotFound(_("There is no base model named %(name)s.") % {"name": base_model}, field="base_model")
    adapter, created = Adapter.objects.select_related("tenant", "base_model").get_or_create(
        tenant=tenant, name=check_name(name, field="name"), defaults={"base_model": base, "description": description}
    )
    if not created:
        raise NameTaken(_("There is already an adapter named %(name)s.") % {"name": name}, field="name")
    events.adapter_created(actor=actor, adapter=adapter)
    return adapter
