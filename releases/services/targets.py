"""What may answer for an alias beside its own version: as the candidate of a split or of a release, or as a shadow."""

from django.utils.translation import gettext as _

from registry.models import Version
from registry.states import VersionState
from releases.errors import TargetNotServable
from releases.models import Alias


def require_candidate(alias: Alias, version: Version, *, field: str) -> None:
    """Raise ``TargetNotServable`` unless the version, which the caller has locked, may answer for the alias."""
    refusal = _refusal(alias, version)
    if refusal:
        raise TargetNotServable(
            refusal % {"version": version, "state": version.state, "alias": alias},
            field=field,
        )


def _refusal(alias: Alias, version: Version) -> str:
    own = version.adapter.tenant_id == alias.tenant_id and version.adapter.base_model_id == alias.adapter.base_model_id
    if not own:
        return _("%(version)s is not a version of the tenant and base model of %(alias)s.")
    if version.pk == alias.version_id:
        return _("%(alias)s points at %(version)s already.")
    if version.state != VersionState.APPROVED:
        return _("%(version)s is %(state)s. Only an approved version can answer for an alias.")
    if version.purged_at is not None:
        return _("The files of %(version)s were removed by retention. Push them again as a new version.")
    return ""
