"""Which alias a name may be in a tenant: its own, an adapter's default, or one that the tenant was granted."""

from django.utils.translation import gettext as _

from registry.errors import NameTaken
from registry.models import Adapter, Tenant
from registry.naming import default_alias_name
from releases.errors import TargetNotServable
from releases.models import Alias, AliasGrant


def require_name(name: str, *, tenant: Tenant, adapter: Adapter, alias: Alias | None, field: str = "version") -> None:
    """Raise unless the name, which is one and which the caller has locked, may stand for versions of the adapter.

    ``alias`` is what the tenant has by that name already; ``field`` is what names a version of the adapter.

    Raises:
        TargetNotServable: it is the default of another adapter, or of one that has no approved version yet.
        NameTaken: the tenant calls an alias of another tenant by it.

    """
    if "." in name:
        _require_own_default(name, adapter=adapter, alias=alias, field=field)
    elif alias is None and AliasGrant.objects.filter(tenant=tenant, name=name).exists():
        raise NameTaken(
            _("%(tenant)s calls an alias that is shared with it by the name %(name)s. Take another one.")
            % {"tenant": tenant, "name": name},
            field="alias",
        )


def _require_own_default(name: str, *, adapter: Adapter, alias: Alias | None, field: str) -> None:
    if name != default_alias_name(adapter.name):
        raise TargetNotServable(
            _("%(name)s stands for versions of its own adapter alone, not of %(adapter)s.")
            % {"name": name, "adapter": adapter},
            field=field,
        )
    if alias is None:
        raise TargetNotServable(
            _("%(name)s is made with the first approved version of %(adapter)s, which has none.")
            % {"name": name, "adapter": adapter},
            field=field,
        )
