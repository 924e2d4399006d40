"""How a node stands, in words: each mark with a sentence and since when it holds. Pure but for translation."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from cachecontrol.models import Node
from cachecontrol.states import NodeStatus


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing to know of a node; ``kind`` is how it is to be read at a glance."""

    word: str
    kind: str
    sentence: str
    since: datetime | None


def marks_of(node: Node) -> list[Mark]:
    """What stands out; what needs somebody comes first. Of a node that is well, that it is up."""
    found = [*_of_agent(node), *_of_engine(node), *_of_operator(node)]
    if node.status == NodeStatus.UP and not any(mark.kind == "bad" for mark in found):
        found.append(Mark(_("up"), "good", _("Its agent reports, and its engine is well."), None))
    return found


def _of_agent(node: Node) -> list[Mark]:
    if node.status == NodeStatus.LOST:
        sentence = _("Its agent is silent. Nothing new goes there; its engine may still answer.")
        return [Mark(_("down"), "bad", sentence, node.last_seen_at)]
    if node.status == NodeStatus.NEW:
        sentence = _("It has never reported. Start its agent with the token that it was registered with.")
        return [Mark(_("new"), "waiting", sentence, node.created_at)]
    return []


def _of_engine(node: Node) -> list[Mark]:
    found = []
    if node.poisoned:
        sentence = _("Its engine's answers can't be trusted. It gets no requests until it was restarted.")
        found.append(Mark(_("poisoned"), "bad", sentence, node.poisoned_at))
    if node.engine_sick_since is not None:
        found.append(Mark(_("engine sick"), "bad", _("Its engine doesn't answer its agent."), node.engine_sick_since))
    if node.tainted:
        sentence = _("A load failed inside its engine and may have left something in a slot. Others are preferred.")
        found.append(Mark(_("tainted"), "bad", sentence, node.tainted_at))
    if node.stuck:
        sentence = _("Its engine needs a restart, and its agent was given no way to do it. Restart it by hand.")
        found.append(Mark(_("stuck"), "bad", sentence, None))
    if node.recycling_since is not None:
        sentence = _("Its engine is being restarted. It gets no requests until it is back.")
        found.append(Mark(_("recycling"), "busy", sentence, node.recycling_since))
    return found


def _of_operator(node: Node) -> list[Mark]:
    found = []
    if node.draining:
        sentence = _("It gets no more requests. What it holds is placed elsewhere and leaves.")
        found.append(Mark(_("draining"), "waiting", sentence, node.draining_at))
    if node.cordoned:
        sentence = _("Nothing new is placed here. What is here stays and goes on answering.")
        found.append(Mark(_("cordoned"), "waiting", sentence, node.cordoned_at))
    return found
