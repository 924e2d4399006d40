"""What groups at the provider of identities mean here. Pure.

The setting ``OIDC_ROLES`` is JSON: ``{"ml-reviewers": ["acme/reviewer"], "platform": ["platform/admin"]}``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.states import Role

PLATFORM_ADMIN: Final = "platform/admin"


@dataclass(frozen=True, slots=True)
class Granted:
    """What a person's groups give.

    Attributes:
        roles: pairs of a tenant's name and a role.
        is_platform_admin: administers the platform.

    """

    roles: frozenset[tuple[str, Role]] = frozenset()
    is_platform_admin: bool = False

    def __bool__(self) -> bool:
        return bool(self.roles) or self.is_platform_admin


class MappingError(ValueError):
    """The setting can't be read; the message says where."""


def read_mapping(text: str) -> dict[str, Granted]:
    """By group, what it gives. Raises ``MappingError``."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"OIDC_ROLES is not JSON: {error}"
        raise MappingError(message) from None
    if not isinstance(found, dict):
        message = "OIDC_ROLES has to be an object: group to a list of tenant/role"
        raise MappingError(message)
    return {str(group): _granted(str(group), given) for group, given in found.items()}


def managed_by(mapping: Mapping[str, Granted]) -> Granted:
    """All that groups can give, and therefore take away again at a sign-in."""
    return _joined(mapping.values())


def granted_to(mapping: Mapping[str, Granted], claim: Any) -> Granted:  # noqa: ANN401  whatever the provider sent
    """What the groups in ``claim`` (one name or a list of them) give together."""
    names = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return _joined(mapping[name] for name in names if isinstance(name, str) and name in mapping)


def _joined(parts: Iterable[Granted]) -> Granted:
    known = list(parts)
    return Granted(
        roles=frozenset(role for each in known for role in each.roles),
        is_platform_admin=any(each.is_platform_admin for each in known),
    )


def _granted(group: str, given: object) -> Granted:
    if not isinstance(given, list):
        message = f"OIDC_ROLES: what {group} gives has to be a list of tenant/role"
        raise MappingError(message)
    names = [str(each) for each in given]
    return Granted(
        roles=frozenset(_role(group, name) for name in names if name != PLATFORM_ADMIN),
        is_platform_admin=PLATFORM_ADMIN in names,
    )


def _role(group: str, name: str) -> tuple[str, Role]:
    tenant, _slash, role = name.partition("/")
    try:
        return tenant, Role(role)
    except ValueError:
        known = ", ".join(each.value for each in Role)
        message = f"OIDC_ROLES: {group} gives {name}; a role is one of {known}"
        raise MappingError(message) from None
