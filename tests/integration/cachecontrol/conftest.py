from typing import Any

import pytest

from cachecontrol.models import Node
from registry import dispatch
from registry.models import Adapter, Version
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_adapter, make_version


@pytest.fixture
def adapter(db: None) -> Adapter:
    return make_adapter()


@pytest.fixture
def version(adapter: Adapter) -> Version:
    return make_version(adapter=adapter)


@pytest.fixture
def node(version: Version) -> Node:
    """A node that is up, with the base revision of ``version``."""
    return make_node(base_revision=version.base_revision, name="n1")


class NodeQueues:
    """The broker's queues of the nodes; ``is_away`` makes it unreachable."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any]]] = []
        self.is_away = False

    def send(self, node: str, task: str, command: dict[str, Any]) -> None:
        if self.is_away:
            raise dispatch.BrokerAway("The message broker does not answer.")
        self.sent.append((node, task, command))

    @property
    def tasks(self) -> list[str]:
        return [task for _node, task, _command in self.sent]


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch, signer: Any, store: Any) -> NodeQueues:
    made = NodeQueues()
    monkeypatch.setattr(dispatch, "send_to_node", made.send)
    return made
