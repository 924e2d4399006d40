"""What the people of a tenant do with the stack, from outside: through the SDK and the gateway, with real tokens."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from client.audit import ChainVerdict, verify_export
from client.errors import ApiError, LorekeeperError, NotFound, ServerUnreachable
from client.models import Alias, Version
from client.refs import PairRef, VersionRef
from client.sdk import LorekeeperClient
from deploy.embedded.stack import Stack

T = TypeVar("T")
TENANT, ADAPTER, ALIAS = "acme", "support-tone", "support"
LINE = PairRef(TENANT, ADAPTER)
ALIAS_REF = PairRef(TENANT, ALIAS)

PEOPLE = {
    "ana": ("uploader", ["read", "upload"]),
    "ben": ("reviewer", ["read", "approve"]),
    "rui": ("release_manager", ["read", "release"]),
    "olga": ("operator", ["read", "operate"]),
    "ivy": ("auditor", ["read", "audit"]),
}


@dataclass
class Journey:
    """One tenant with its people on a running stack."""

    stack: Stack
    base_model: str
    base_revision: str
    node: str = "embedded"
    clients: dict[str, LorekeeperClient] = field(default_factory=dict)
    application_token: str = ""

    def set_up(self) -> "Journey":
        """Make the tenant, its members, their tokens, and the adapter."""
        tokens = json.loads(self.stack.facts.secrets.bootstrap.read_text())
        with LorekeeperClient(self.stack.urls["web"], tokens["admin_token"]) as admin:
            admin.tenants.create(TENANT)
            for name, (role, scopes) in PEOPLE.items():
                email = f"{name}@acme.example"
                admin.tenants.add_member(TENANT, email=email, role=role, name=name.title())
                made = admin.tenants.create_token(TENANT, name=name, kind="person", scopes=scopes, person_email=email)
                self.clients[name] = LorekeeperClient(self.stack.urls["web"], str(made.token))
            application = admin.tenants.create_token(TENANT, name="shop", kind="application", scopes=["infer"])
            self.application_token = str(application.token)
        self.clients["ana"].adapters.create(TENANT, ADAPTER, base_model=self.base_model)
        return self

    def push(self, folder: Path, name: str) -> Version:
        """Push and wait for the verdict; an interrupted push is run again, as a pipeline would."""
        ref = VersionRef(TENANT, ADAPTER, name)
        ana = self.clients["ana"]
        insist(lambda: ana.push(folder, LINE, base_revision=self.base_revision, name=name))
        return insist(lambda: ana.versions.wait(ref))

    def show(self, name: str) -> Version:
        return insist(lambda: self.clients["ben"].versions.get(VersionRef(TENANT, ADAPTER, name)))

    def approve(self, name: str) -> Version:
        ref = VersionRef(TENANT, ADAPTER, name)
        ben = self.clients["ben"]
        return insist(lambda: ben.versions.approve(ref, digest=str(ben.versions.get(ref).root_digest)))

    def point_alias(self, name: str) -> Alias:
        rui = self.clients["rui"]
        return insist(lambda: rui.aliases.set(ALIAS_REF, VersionRef(TENANT, ADAPTER, name)))

    def roll_back(self) -> Alias:
        rui = self.clients["rui"]
        revision = insist(lambda: rui.aliases.get(ALIAS_REF)).revision
        return insist(lambda: rui.aliases.rollback(ALIAS_REF, from_revision=revision))

    def warm(self, name: str) -> None:
        olga = self.clients["olga"]
        insist(lambda: olga.nodes.warm(self.node, VersionRef(TENANT, ADAPTER, name)))
        wait_until(lambda: self.observed(name) == "loaded", f"{name} is loaded")

    def is_in_flight(self, name: str) -> bool:
        """Whether the version is between two resting states at this moment; no answer counts as yes."""
        ref = VersionRef(TENANT, ADAPTER, name)
        try:
            version = self.clients["ben"].versions.get(ref)
            residencies = self.clients["olga"].nodes.get(self.node).residencies
        except NotFound:
            return False
        except LorekeeperError:
            return True
        wanted = [residency for residency in residencies if residency.version == name and residency.desired == "gpu"]
        is_moving = any(residency.observed != "loaded" for residency in wanted)
        return version.state in {"uploading", "validating"} or is_moving

    def observed(self, name: str) -> str:
        node = insist(lambda: self.clients["olga"].nodes.get(self.node))
        states = [residency.observed for residency in node.residencies if residency.version == name]
        return states[0] if states else "absent"

    def ask(self, text: str = "Where is my order?", *, model: str = ALIAS, **more: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 24, **more}
        return httpx.post(
            f"{self.stack.urls['gateway']}/v1/chat/completions",
            json={"temperature": 0, **body},
            headers={"Authorization": f"Bearer {self.application_token}"},
            timeout=120,
        )

    def answering_version(self) -> str:
        """Which version answers now, as the gateway says; retried while something is coming back."""

        def asked() -> str:
            answer = self.ask()
            # A gateway that could not read the routes for a moment does not know an alias made meanwhile.
            if answer.status_code >= 500 or answer.status_code == 404:
                raise ServerUnreachable(self.stack.urls["gateway"], f"{answer.status_code} {answer.text[:200]}")
            assert answer.status_code == 200, answer.text
            return answer.headers["x-lorekeeper-version"]

        return insist(asked, also=(httpx.TransportError,))

    def audit(self) -> ChainVerdict:
        def export() -> ChainVerdict:
            with self.clients["ivy"].audit.export(TENANT) as lines:
                return verify_export(lines, chain=TENANT)

        return insist(export)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def insist(act: Callable[[], T], *, seconds: float = 60, also: tuple[type[Exception], ...] = ()) -> T:
    """Do ``act``, again while the stack is hurt: what an impatient person or a pipeline's retry does."""
    deadline = time.monotonic() + seconds
    expected: tuple[type[Exception], ...] = (LorekeeperError, *also)
    while True:
        try:
            return act()
        except expected as error:
            refused = isinstance(error, ApiError) and error.status < 500
            if refused or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 60) -> float:
    """Wait for ``condition``; returns the seconds it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.05)
    return time.monotonic() - began
