"""Registering serving nodes, and their tokens."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.models import Node
from cachecontrol.selectors import lock_node
from cachecontrol.services.planning.soon import replan_soon
from cachecontrol.services.policies import require_slots_fit
from cachecontrol.states import EngineKind
from registry.actors import Actor
from registry.errors import InvalidInput, NameTaken
from registry.models import BaseModelRevision
from registry.naming import check_name
from registry.permissions import Action, require_on_platform
from registry.services.tokens import NewToken, create_platform_token, withdraw_token
from registry.states import Scope, TokenKind

_KEPT_AS_GIVEN: Final = (
    "engine_kind",
    "engine_url",
    "gpu_slots",
    "cpu_slots",
    "max_rank",
    "disk_bytes",
    "memory_bytes",
)
# What an engine's slots weigh follows from these.
_WEIGHED: Final = frozenset({"engine_kind", "base_revision", "gpu_slots", "max_rank"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a node is. Slots count adapters, in GPU and in CPU memory.

    ``disk_bytes`` is its cache budget, ``memory_bytes`` that for adapters in its CPU memory (None: the policy's alone).
    """

    engine_kind: str
    engine_url: str
    base_revision: BaseModelRevision
    gpu_slots: int
    cpu_slots: int
    max_rank: int
    disk_bytes: int
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeWithToken:
    """A node and the text of its new token, which is never to be had again."""

    node: Node
    token: str


@transaction.atomic
def register_node(*, actor: Actor, name: str, facts: NodeFacts) -> NodeWithToken:
    """Register a node and make its token. Raises ``NameTaken``, ``InvalidInput`` or ``PolicyNotPossible``."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    check_name(name, field="name")
    _check(facts)
    if Node.objects.filter(name=name).exists():
        raise NameTaken(_("There is already a node named %(name)s.") % {"name": name}, field="name")
    require_slots_fit(Node(name=name, **_columns(facts)))
    made = _new_token(actor, name)
    node, created = Node.objects.get_or_create(name=name, defaults={"token": made.token, **_columns(facts)})
    if not created:
        raise NameTaken(_("There is already a node named %(name)s.") % {"name": name}, field="name")
    events.node_registered(actor=actor, node=node)
    return NodeWithToken(node=node, token=made.text)


@transaction.atomic
def change_node(*, actor: Actor, node: Node, facts: NodeFacts) -> Node:
    """Say anew what a node is. Quiet when nothing differs. What doesn't fit it any more leaves it.

    Raises ``InvalidInput`` or ``PolicyNotPossible``.
    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    _check(facts)
    locked = lock_node(node)
    columns = _columns(facts)
    changed = {name: value for name, value in columns.items() if getattr(locked, name) != value}
    if not changed:
        return locked
    before = {name: _plain(getattr(locked, name)) for name in changed}
    pools = {locked.base_revision.digest, facts.base_revision.digest}
    for name, value in changed.items():
        setattr(locked, name, value)
    if changed.keys() & _WEIGHED:
        require_slots_fit(locked)
    locked.save(update_fields=list(changed))
    after = {name: _plain(value) for name, value in changed.items()}
    events.node_changed(actor=actor, node=locked, before=before, after=after)
    for digest in pools:
        replan_soon(digest)
    return locked


@transaction.atomic
def rotate_node_token(*, actor: Actor, node: Node) -> NodeWithToken:
    """Give the node a new token; the old one stops working at once."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    locked = lock_node(node)
    old = locked.token
    made = _new_token(actor, locked.name)
    withdraw_token(actor=actor, token=old)
    locked.token = made.token
    locked.save(update_fields=["token"])
    events.node_token_rotated(actor=actor, node=locked, before=old.prefix)
    return NodeWithToken(node=locked, token=made.text)


def _new_token(actor: Actor, name: str) -> NewToken:
    return create_platform_token(actor=actor, name=f"node {name}", kind=TokenKind.NODE, scopes=[Scope.NODE])


def _columns(facts: NodeFacts) -> dict[str, Any]:
    return {"base_revision": facts.base_revision, **{name: getattr(facts, name) for name in _KEPT_AS_GIVEN}}


def _plain(value: str | int | BaseModelRevision | None) -> str | int | None:
    return value.digest if isinstance(value, BaseModelRevision) else value


def _check(facts: NodeFacts) -> None:
    if facts.engine_kind not in {kind.value for kind in EngineKind}:
        kinds = ", ".join(kind.value for kind in EngineKind)
        raise InvalidInput(_("The engine must be one of: %(kinds)s.") % {"kinds": kinds}, field="engine_kind")
    if not _is_engine_url(facts.engine_url):
        raise InvalidInput(
            _("The engine's URL must be http or https with a host, without user, query or path."), field="engine_url"
        )
    for name in ("gpu_slots", "max_rank", "disk_bytes"):
        if getattr(facts, name) < 1:
            raise InvalidInput(_("%(name)s must be at least 1.") % {"name": name}, field=name)
    if facts.memory_bytes is not None and facts.memory_bytes < 1:
        raise InvalidInput(_("%(name)s must be at least 1.") % {"name": "memory_bytes"}, field="memory_bytes")
    if facts.cpu_slots < facts.gpu_slots:
        raise InvalidInput(
            _("cpu_slots counts all adapters an engine keeps in memory: it can't be less than gpu_slots."),
            field="cpu_slots",
        )


def _is_engine_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return False
    extras = (url.username, url.password, url.query, url.fragment, url.path.strip("/"))
    return url.scheme in {"http", "https"} and bool(url.hostname) and port != 0 and not any(extras)
