"""`LorekeeperClient`: the one object through which programs talk to a Lorekeeper server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import httpx

from client.config import clean_url
from client.decoding import decode
from client.models import Identity
from client.progress import SilentProgress
from client.pull import Puller, PullResult
from client.push import DEFAULT_WORKERS, Pusher, PushRequest, PushResult
from client.resources.adapters import Adapters
from client.resources.aliases import Aliases
from client.resources.audit import Audit
from client.resources.base_models import BaseModels
from client.resources.cache_policies import CachePolicies
from client.resources.evaluations import Evaluations
from client.resources.evictions import Evictions
from client.resources.keys import Keys
from client.resources.nodes import Nodes
from client.resources.policies import Policies
from client.resources.release_templates import ReleaseTemplates
from client.resources.releases import Releases
from client.resources.serving_rules import TenantServingRules
from client.resources.tenants import Tenants
from client.resources.usage import Usage
from client.resources.versions import Versions
from client.resources.webhooks import Webhooks
from client.retry import RetryPolicy
from client.storage import Storage
from client.transport import DIRECT, Transport, path_of

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from client.progress import Progress
    from client.refs import PairRef, VersionRef

DEFAULT_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class LorekeeperClient:
    """A synchronous client of one server with one token; use it as a context manager or call `close`.

    The API is grouped by subject: `tenants`, `base_models`, `adapters`, `versions`, `aliases`, `releases`,
    `release_templates`, `nodes`, `evictions`, `usage`, `audit`, `webhooks`, `keys`, `policies`,
    `cache_policies` and `serving_rules`.
    All calls raise the errors of `client.errors`.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        retry: RetryPolicy | None = None,
        timeout: httpx.Timeout = DEFAULT_TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect lazily to `url` (scheme and host, e.g. ``https://lorekeeper.example``).

        `transport` replaces the network in tests, for API and store alike.
        """
        policy = retry or RetryPolicy()
        api = httpx.Client(timeout=timeout, transport=transport, mounts=DIRECT)
        self._transport = Transport(url=clean_url(url), token=token, retry=policy, http=api)
        self._storage = Storage(http=httpx.Client(timeout=timeout, transport=transport, mounts=DIRECT), retry=policy)
        self.tenants = Tenants(self._transport)
        self.base_models = BaseModels(self._transport)
        self.adapters = Adapters(self._transport)
        self.versions = Versions(self._transport)
        self.evaluations = Evaluations(self._transport)
        self.aliases = Aliases(self._transport)
        self.releases = Releases(self._transport)
        self.release_templates = ReleaseTemplates(self._transport)
        self.nodes = Nodes(self._transport)
        self.evictions = Evictions(self._transport)
        self.usage = Usage(self._transport)
        self.audit = Audit(self._transport)
        self.webhooks = Webhooks(self._transport)
        self.keys = Keys(self._transport)
        self.policies = Policies(self._transport)
        self.cache_policies = CachePolicies(self._transport)
        self.serving_rules = TenantServingRules(self._transport)

    @property
    def url(self) -> str:
        """Return the server's base URL."""
        return self._transport.url

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()
        self._storage.close()

    def whoami(self) -> Identity:
        """Return who the token stands for."""
        return decode(Identity, self._transport.call("GET", path_of("whoami")))

    def push(
        self,
        folder: Path,
        adapter: PairRef,
        *,
        base_revision: str,
        name: str | None = None,
        lineage: dict[str, object] | None = None,
        progress: Progress | None = None,
        workers: int = DEFAULT_WORKERS,
    ) -> PushResult:
        """Push a folder as a version and start its validation; see `client.push`."""
        pusher = Pusher(self.versions, self._storage, progress or SilentProgress(), workers)
        return pusher.push(folder, PushRequest(adapter, base_revision, name, lineage))

    def pull(self, ref: VersionRef, folder: Path, *, progress: Progress | None = None) -> PullResult:
        """Pull a signed version into a new folder; see `client.pull`."""
        return self.puller(progress).pull(ref, folder)

    def puller(self, progress: Progress | None = None) -> Puller:
        """Return a `Puller` over this connection, for pulls with a check of one's own."""
        return Puller(self.versions, self._storage, progress or SilentProgress())
