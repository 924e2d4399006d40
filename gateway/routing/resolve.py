"""From the client's model name to one exact version. What the client wrote is only ever looked up, never passed on."""

import re
from dataclasses import dataclass

from gateway.errors import MissingModel, ModelNotFound, VersionRevoked, VersionUnavailable
from gateway.routing.snapshot import Alias, RoutingSnapshot, Version

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LONGEST = 127  # two names and the slash between them

_RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class Route:
    """An alias and the version that it points to in one snapshot."""

    alias: Alias
    version: Version


def alias_name(tenant: str, model: object) -> str:
    """The alias that `model` names: `alias` or `tenant/alias` of the own tenant.

    Raises MissingModel, or ModelNotFound for whatever is no such name, before anything is looked up.
    """
    if not isinstance(model, str) or not model:
        message = "The field 'model' must name an alias."
        raise MissingModel(message, param="model")
    if len(model) > _LONGEST:
        raise _not_found()
    owner, slash, name = model.rpartition("/")
    if (slash and owner != tenant) or not _NAME.fullmatch(name):
        raise _not_found()
    return name


def resolve(snapshot: RoutingSnapshot, *, tenant: str, model: object) -> Route:
    """The version that answers; raises MissingModel, ModelNotFound, VersionRevoked or VersionUnavailable."""
    alias = snapshot.alias(tenant, alias_name(tenant, model))
    if alias is None:
        raise _not_found()
    version = snapshot.versions.get(alias.version_id)
    if version is None or version.tenant != tenant:
        message = f"The version behind '{alias.name}' isn't available for serving."
        raise VersionUnavailable(message, param="model", retry_after_s=_RETRY_AFTER_S)
    if not version.may_be_served:
        message = f"The version behind '{alias.name}' was revoked and no longer answers; the alias must be moved."
        raise VersionRevoked(message, param="model")
    return Route(alias=alias, version=version)


def _not_found() -> ModelNotFound:
    return ModelNotFound(
        "There is no such model for this API key; GET /v1/models lists those there are.", param="model"
    )
