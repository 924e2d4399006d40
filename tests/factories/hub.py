"""Pushes to the hub-compatible API, as clients put them together."""

import base64
import io
import json
from typing import Any

from registry.actors import Actor
from registry.hub.names import MAIN
from registry.services.hub.commits import commit_push
from registry.services.hub.repos import find_repo


def added(path: str, content: bytes) -> dict[str, Any]:
    """The operation that adds a file."""
    text = base64.b64encode(content).decode()
    return {"key": "file", "value": {"content": text, "path": path, "encoding": "base64"}}


def commit_body(*operations: dict[str, Any], parent: str | None = None) -> bytes:
    """A commit as NDJSON."""
    header: dict[str, Any] = {"summary": "Upload", "description": ""}
    if parent is not None:
        header["parentCommit"] = parent
    lines = [{"key": "header", "value": header}, *operations]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def push_files(actor: Actor, repo_id: str, files: dict[str, bytes], *, parent: str | None = None) -> str:
    """Push to the caller's draft of ``main``; returns the commit."""
    tenant, _slash, name = repo_id.partition("/")
    body = commit_body(*(added(path, content) for path, content in files.items()), parent=parent)
    repo = find_repo(actor=actor, tenant=tenant, name=name)
    return commit_push(actor=actor, repo=repo, branch=MAIN, source=io.BytesIO(body), length=len(body))
