import ipaddress
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.receiver import Receiver, receiving


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """A receiver on this machine, to which deliveries may go."""
    settings.WEBHOOK_NETWORKS = [ipaddress.ip_network("127.0.0.0/8")]
    with receiving() as found:
        yield found
