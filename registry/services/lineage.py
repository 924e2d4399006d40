"""What a version may say of where it comes from, against what there is."""

from django.utils.translation import gettext as _

from registry.errors import InvalidInput
from registry.lineage import Lineage, check_lineage
from registry.models import Adapter, Version


def accept_lineage(*, adapter: Adapter, lineage: Lineage) -> Lineage:
    """The lineage of a new version of ``adapter`` in its kept form. Raises ``InvalidInput``, which names the key."""
    kept = check_lineage(lineage, adapter=adapter.name)
    if "parent_version" in kept:
        parent, _at, version = kept["parent_version"].partition("@")
        found = Version.objects.filter(adapter__tenant_id=adapter.tenant_id, adapter__name=parent, name=version)
        if not found.exists():
            raise InvalidInput(
                _("There is no version %(version)s of %(adapter)s that this one could come from.")
                % {"version": version, "adapter": parent},
                field="lineage.parent_version",
            )
    return kept
