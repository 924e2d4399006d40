"""What one run of the command line shares: output, environment, connections. Tests hand in their own transport."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from client.cli.output import Output
from client.config import Credentials, load_credentials
from client.retry import RetryPolicy
from client.sdk import LorekeeperClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


@dataclass(slots=True)
class Session:
    """One run; connections are closed with the click context."""

    json_mode: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    transport: httpx.BaseTransport | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    _client: LorekeeperClient | None = None

    @property
    def out(self) -> Output:
        """Return the printer for the form that was asked for."""
        return Output(json_mode=self.json_mode)

    @property
    def client(self) -> LorekeeperClient:
        """Return the connection to the configured server, opened at first use."""
        if self._client is None:
            self._client = self.connect(load_credentials(self.environ))
        return self._client

    def connect(self, credentials: Credentials) -> LorekeeperClient:
        """Return a connection that ends with this run."""
        client = LorekeeperClient(credentials.url, credentials.token, retry=self.retry, transport=self.transport)
        click.get_current_context().find_root().call_on_close(client.close)
        return client


pass_session = click.make_pass_decorator(Session, ensure=True)
