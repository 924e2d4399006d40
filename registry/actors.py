"""Who acts: the identity every service takes and every audit record names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from registry.states import Role, Scope

ActorKind = Literal["person", "application", "gateway", "node", "monitor", "system", "anonymous"]
How = Literal["", "api", "hub", "web", "task", "command"]


@dataclass(frozen=True, slots=True)
class Actor:
    """An authenticated caller.

    Attributes:
        kind: what the caller is.
        id: the person's e-mail, the token's prefix, or the system part's name.
        name: what people call it; copied into audit records.
        person_id: primary key of the person, when one acts.
        token_prefix: the token used, if any.
        scopes: what the token allows; a session or the system has every scope.
        roles: roles by tenant primary key.
        tenant_id: the one tenant an application token belongs to.
        is_platform_admin: may administer every tenant.
        request_id: the HTTP request or task this act belongs to.
        source: where it came from (an address, or a worker's name).
        how: by which way: a request to the API or the Hub's API, a page of the site, a task of a worker, or a command
            of an operator.

    """

    kind: ActorKind
    id: str
    name: str
    person_id: int | None = None
    token_prefix: str = ""
    scopes: frozenset[Scope] = frozenset()
    roles: Mapping[int, frozenset[Role]] = field(default_factory=dict)
    tenant_id: int | None = None
    is_platform_admin: bool = False
    request_id: str = ""
    source: str = ""
    how: How = ""


def system_actor(part: str, *, request_id: str = "", how: How = "task") -> Actor:
    """The actor of a sweep, a task or a management command."""
    return Actor(
        kind="system", id=part, name=part, scopes=frozenset(Scope), request_id=request_id, source=part, how=how
    )
