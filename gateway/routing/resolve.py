"""From the client's model name to one exact version. What the client wrote is only ever looked up, never passed on."""

import hashlib
from dataclasses import dataclass
from typing import Final

from gateway.errors import MissingModel, ModelNotFound, VersionRevoked, VersionUnavailable
from gateway.routing.snapshot import Alias, RoutingSnapshot, Split, Version

_RETRY_AFTER_S: Final = 5
_BUCKETS: Final = 10_000
_DIGEST_BYTES: Final = 8
_SHADOW: Final = "shadow:"


@dataclass(slots=True)
class Route:
    """An alias and the version that answers for one request key in one snapshot.

    `side` is `stable` or `canary` while the alias is split, else empty.
    """

    alias: Alias
    version: Version
    side: str = ""

    @property
    def label(self) -> bytes:
        """What the caller is told of the version, for a header: of another tenant's, not whose it is."""
        version = self.version
        return f"{version.adapter}@{version.name}".encode() if self.alias.is_shared else version.label_bytes


@dataclass(slots=True)
class BaseRoute:
    """A base model by itself, which the tenant is permitted to ask for."""

    base_model: str


def resolve(snapshot: RoutingSnapshot, *, tenant: str, model: object, key: str = "") -> Route | BaseRoute:
    """What answers: the version behind `alias` or `tenant/alias`, or a base model that the tenant may use.

    `key` says who asks (a session, a user, or the request itself), so that the same one stays on the same side of a
    canary. Raises MissingModel, ModelNotFound, VersionRevoked or VersionUnavailable.
    """
    if not isinstance(model, str) or not model:
        message = "The field 'model' must name an alias."
        raise MissingModel(message, param="model")
    alias = _alias(snapshot, tenant, model)
    if alias is None:
        return _base(snapshot, tenant, model)
    split = alias.split
    if split is None:
        return Route(alias, _served(snapshot, alias))
    if takes_candidate(split, tenant=tenant, key=key):
        candidate = snapshot.versions.get(split.candidate_id)
        # A candidate that was withdrawn takes nobody down with it: its share goes back to the stable version.
        if candidate is not None and candidate.tenant == alias.owner and candidate.may_be_served:
            return Route(alias, candidate, "canary")
    return Route(alias, _served(snapshot, alias), "stable")


class Routes:
    """Routes of aliases that aren't split, found once per snapshot instead of with each request."""

    def __init__(self) -> None:
        """Begin with nothing found."""
        self._snapshot: RoutingSnapshot | None = None
        self._found: dict[tuple[str, str], Route] = {}

    def of(self, snapshot: RoutingSnapshot, *, tenant: str, model: object, key: str) -> Route | BaseRoute:
        """What `resolve` says."""
        if snapshot is not self._snapshot:
            self._snapshot, self._found = snapshot, {}
        if not isinstance(model, str):
            return resolve(snapshot, tenant=tenant, model=model, key=key)
        known = self._found.get((tenant, model))
        if known is not None:
            return known
        route = resolve(snapshot, tenant=tenant, model=model, key=key)
        if isinstance(route, Route) and route.alias.split is None:
            self._found[tenant, model] = route
        return route


def stable_of(snapshot: RoutingSnapshot, route: Route) -> Route:
    """The route of the same request to the stable version; raises as `resolve` does."""
    return Route(route.alias, _served(snapshot, route.alias), "stable")


def bucket(salt: str, key: str) -> int:
    """The bucket, 0..9999, of a key: the first 8 bytes of SHA-256 of the UTF-8 text `salt:key`, big-endian, mod 10000.

    2^64 is so much larger than 10000 that no bucket is likelier than another by more than 10^-15.
    """
    digest = hashlib.sha256(f"{salt}:{key}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:_DIGEST_BYTES], "big") % _BUCKETS


def takes_candidate(split: Split, *, tenant: str, key: str) -> bool:
    """Whether the key is on the candidate's side: denied tenants never, allowed ones always, else the first buckets.

    A key's bucket doesn't depend on the share, so whoever is in stays in while the share grows.
    """
    if tenant in split.deny:
        return False
    return tenant in split.allow or bucket(split.salt, key) < split.basis_points


def shadow_of(snapshot: RoutingSnapshot, route: Route, *, request_id: str) -> Version | None:
    """The version to which this request is mirrored, if it is one of the sampled ones.

    Each request draws anew, and independently of the side of the canary that it's on. What answers already isn't
    mirrored to itself.
    """
    split = route.alias.split
    if split is None or split.shadow_id is None or split.shadow_id == route.version.id:
        return None
    if bucket(f"{_SHADOW}{split.salt}", request_id) >= split.shadow_basis_points:
        return None
    version = snapshot.versions.get(split.shadow_id)
    if version is None or version.tenant != route.alias.owner or not version.may_be_served:
        return None
    return version if snapshot.rules[route.alias.tenant].allows_shadow else None


def _alias(snapshot: RoutingSnapshot, tenant: str, model: str) -> Alias | None:
    own = snapshot.aliases.get(tenant)
    if own is None:
        return None
    alias = own.get(model)
    if alias is not None:
        return alias
    owner, slash, name = model.partition("/")
    return own.get(name) if slash and owner == tenant else None


def _base(snapshot: RoutingSnapshot, tenant: str, model: str) -> BaseRoute:
    if model in snapshot.rules[tenant].base_models and model in snapshot.bases:
        return BaseRoute(model)
    message = "There is no such model for this API key; GET /v1/models lists those there are."
    raise ModelNotFound(message, param="model")


def _served(snapshot: RoutingSnapshot, alias: Alias) -> Version:
    version = snapshot.versions.get(alias.version_id)
    if version is None or version.tenant != alias.owner:
        message = f"The version behind '{alias.name}' isn't available for serving."
        raise VersionUnavailable(message, param="model", retry_after_s=_RETRY_AFTER_S)
    if not version.may_be_served:
        message = f"The version behind '{alias.name}' was revoked and no longer answers; the alias must be moved."
        raise VersionRevoked(message, param="model")
    return version
