"""A small in-process registry, store and gateway behind one loopback socket, with switches for trouble.

It keeps the promises of the REST API that the client relies on, in memory, and nothing more.
"""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import uvicorn

from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.checkpoints import AuditCheckpoint, sign_checkpoint
from registry.signing.local_key import LocalKeySigner, generate_key_file
from registry.signing.manifest import SignedFile, root_digest

Json = dict[str, Any]
TOKEN = "lk_0123456789ab_secret"
API_KEY = "lk_ba9876543210_key"
GENESIS = "0" * 64


class Refused(Exception):
    """Becomes problem+json."""

    def __init__(self, status: int, code: str, detail: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.body: Json = {"type": "about:blank", "status": status, "code": code, "detail": detail}
        if field:
            self.body["field"] = field


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] = ()


def as_json(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"content-type": "application/json"})


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Json:
        data = json.loads(self.body or b"{}")
        assert isinstance(data, dict)
        return data


class FakeRegistry:
    """State, switches and what was seen. `url` is set once it runs."""

    def __init__(self, folder: Path) -> None:
        self.url = ""
        self.signer = LocalKeySigner.from_pem_file(generate_key(folder))
        self.versions: dict[str, Json] = {}
        self.objects: dict[str, bytes] = {}
        self.aliases: dict[str, list[Json]] = {}
        self.audit: list[Json] = []
        self.checkpoints: list[tuple[Json, str]] = []
        self.reject: list[Json] = []
        self.put_statuses: list[int] = []
        self.put_delay_s = 0.0
        self.tamper_with: str | None = None
        self.puts: list[str] = []
        self.readable = True
        self.seen: list[tuple[str, str]] = []

    async def __call__(
        self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        assert scope["type"] == "http"
        request = await _read(scope, receive)
        self.seen.append((request.method, request.path))
        if request.path.startswith("/store/") and request.method == "PUT":
            await asyncio.sleep(self.put_delay_s)
        try:
            reply = self._route(request)
        except Refused as refused:
            reply = as_json(refused.body, refused.status)
        await _answer(send, reply)

    def _route(self, request: Request) -> Reply:
        if request.path.startswith("/store/"):
            return self._store(request)
        if request.path == "/v1/chat/completions":
            return self._chat(request)
        if request.path == "/v1/feedback":
            return self._mark(request)
        return self._api(request)

    def _api(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "not_authenticated", "The token is unknown.")
        if request.method == "GET" and not self.readable:
            raise Refused(403, "permission_denied", "The token lacks the scope read.")
        parts = [unquote(part) for part in request.path.removeprefix("/api/v1/").split("/")]
        match parts:
            case ["whoami"]:
                return as_json({"person": {"email": "ada@acme.test", "name": "Ada"}, "scopes": ["read"], "roles": {}})
            case ["tenants", tenant, "adapters", adapter, "versions", *rest]:
                return self._versions(request, tenant, adapter, rest)
            case ["tenants", tenant, "aliases", alias, *rest]:
                return self._aliases(request, tenant, alias, rest)
            case ["tenants", _, "audit", *rest]:
                return self._audit_log(rest)
            case ["keys"]:
                key = {"key_id": self.signer.key_id, "public_key": self.signer.public_pem(), "valid_from": None}
                return as_json({"keys": [key]})
            case ["base-models"]:
                body = request.json()
                return as_json({"name": body["name"], "revision": body["revision"], "digest": "d" * 64}, 201)
        raise Refused(404, "not_found", f"Nothing lies at {request.path}.")

    def _audit_log(self, rest: list[str]) -> Reply:
        match rest:
            case ["export"]:
                return Reply(200, "".join(json.dumps(row) + "\n" for row in self.audit).encode())
            case ["checkpoints"]:
                return as_json({"results": [facts for facts, _text in self.checkpoints], "next": None})
            case ["checkpoints", seq]:
                return Reply(200, next(text for facts, text in self.checkpoints if facts["seq"] == int(seq)).encode())
        raise Refused(404, "not_found", "There is nothing like that in the log.")

    def _versions(self, request: Request, tenant: str, adapter: str, rest: list[str]) -> Reply:
        if not rest:
            if request.method == "GET":
                return as_json({"results": list(self.versions.values())})
            return self._create(request.json(), tenant, adapter)
        version = self.versions.get(rest[0])
        if version is None:
            raise Refused(404, "not_found", "There is no such version.", "version")
        acts: dict[tuple[str, str], Callable[[], Reply]] = {
            ("GET", ""): lambda: as_json(self._looked_at(version)),
            ("POST", "finalize"): lambda: self._finalize(version),
            ("GET", "report"): self._report,
            ("POST", "approve"): lambda: self._approve(version, request.json()),
            ("GET", "signature"): lambda: self._signature(version),
            ("GET", "files"): lambda: self._file(version, "/".join(rest[2:])),
        }
        return acts[request.method, rest[1] if len(rest) > 1 else ""]()

    def _report(self) -> Reply:
        verdict = "reject" if self.reject else "accept"
        return as_json({"verdict": verdict, "checks": self.reject, "policy_version": "1", "facts": {"rank": 8}})

    def _file(self, version: Json, path: str) -> Reply:
        digest = {file["path"]: file["sha256"] for file in version["files"]}[path]
        return Reply(302, headers={"location": f"{self.url}/store/{digest}?X-Signature=secret"})

    def _create(self, body: Json, tenant: str, adapter: str) -> Reply:
        name = body.get("name") or f"2026-07-04.{len(self.versions) + 1}"
        known = self.versions.get(name)
        if known and (known["files"] != body["files"] or known["state"] != "uploading"):
            raise Refused(409, "version_exists", f"{name} exists with other files.", "name")
        version = known or {
            "id": f"id-{name}",
            "tenant": tenant,
            "adapter": adapter,
            "name": name,
            "state": "uploading",
            "base_model": "smol",
            "base_revision": body["base_revision"],
            "base_digest": "b" * 64,
            "root_digest": root_digest(_signed_files(body["files"])),
            "rank": None,
            "files": body["files"],
            "uploader": "ada@acme.test",
            "created_at": "2026-07-04T10:00:00Z",
            "state_message": "",
            "approvals": [],
            "lineage": body.get("lineage", {}),
        }
        self.versions[name] = version
        uploads = [self._upload(file) for file in version["files"]]
        return as_json({**version, "uploads": uploads}, 200 if known else 201)

    def _upload(self, file: Json) -> Json:
        url = f"{self.url}/store/{file['sha256']}?X-Signature=secret"
        headers = {"x-checksum": file["sha256"], "if-none-match": "*"}
        stored = file["sha256"] in self.objects
        return {"path": file["path"], "method": "PUT", "url": url, "headers": headers, "stored": stored}

    def _finalize(self, version: Json) -> Reply:
        for file in version["files"]:
            if file["sha256"] not in self.objects:
                raise Refused(409, "upload_incomplete", f"{file['path']} isn't stored.", file["path"])
        version["state"] = "validating"
        return as_json(version, 202)

    def _looked_at(self, version: Json) -> Json:
        """Show the version as it is, and let validation end behind the reader's back."""
        shown = dict(version)
        if version["state"] == "validating":
            version["state"] = "rejected" if self.reject else "candidate"
            version["state_message"] = "; ".join(check["message"] for check in self.reject)
        return shown

    def _approve(self, version: Json, body: Json) -> Reply:
        if body["digest"] != version["root_digest"]:
            raise Refused(409, "digest_mismatch", "The digest isn't the version's.", "digest")
        version["state"] = "approved"
        version["approvals"] = [{"reviewer": "grace@acme.test", "decision": "approve", "digest": body["digest"]}]
        return as_json(version)

    def _signature(self, version: Json) -> Reply:
        if version["state"] != "approved":
            raise Refused(409, "not_signed", "The version isn't signed yet; it needs an approval.")
        files = _signed_files(version["files"])
        claims = ReleaseClaims(
            tenant=version["tenant"],
            adapter=version["adapter"],
            version=version["name"],
            base_model="smol",
            base_revision="b" * 64,
            rank=8,
            root_digest=version["root_digest"],
            engine_name="lk-tone-v1-0",
            validation_digest="c" * 64,
            approvals=({"person": "grace@acme.test"},),
        )
        return as_json(
            {
                "bundle": sign_files(self.signer, files),
                "attestation": sign_release(self.signer, claims, files),
                "key_id": self.signer.key_id,
                "public_key": self.signer.public_pem(),
            }
        )

    def _aliases(self, request: Request, tenant: str, alias: str, rest: list[str]) -> Reply:
        history = self.aliases.setdefault(alias, [])
        if rest == ["split"]:
            history[-1]["split"] = request.json() if request.method == "PUT" else None
            history[-1]["reason"] = request.query.get("reason", [""])[0]
        elif request.method == "PUT":
            body = request.json()
            self._move(history, body["adapter"], body["version"], "move" if history else "set")
        elif rest == ["rollback"]:
            self._move(history, history[-2]["adapter"], history[-2]["version"], "rollback")
        elif rest == ["history"]:
            return as_json({"results": history[::-1]})
        if not history:
            raise Refused(404, "not_found", "There is no such alias.", "alias")
        now = history[-1]
        shown = {key: now.get(key) for key in ("adapter", "version", "revision", "split")}
        return as_json({"tenant": tenant, "name": alias, **shown})

    def _move(self, history: list[Json], adapter: str, version: str, kind: str) -> None:
        before = history[-1]["version"] if history else None
        row = {"revision": len(history) + 1, "adapter": adapter, "version": version, "previous_version": before}
        history.append({**row, "kind": kind, "actor": {"kind": "person", "name": "Ada"}, "reason": "", "at": "now"})

    def _store(self, request: Request) -> Reply:
        if "authorization" in request.headers:
            return Reply(400, b"a token has no business here")
        digest = request.path.removeprefix("/store/")
        if request.method == "GET":
            data = self.objects[digest]
            return Reply(200, data[:-1] + b"!" if digest == self.tamper_with else data)
        self.puts.append(digest)
        if self.put_statuses and (status := self.put_statuses.pop(0)) != 200:
            return Reply(status, b"<Error><Code>Trouble</Code><Message>On order.</Message></Error>")
        if digest in self.objects:
            return Reply(412)
        if hashlib.sha256(request.body).hexdigest() != request.headers["x-checksum"]:
            return Reply(400, b"<Error><Code>BadDigest</Code><Message>Other bytes.</Message></Error>")
        self.objects[digest] = request.body
        return Reply(200)

    def _chat(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {API_KEY}":
            return as_json({"error": {"message": "The API key is unknown.", "code": "invalid_api_key"}}, 401)
        headers = {"x-lorekeeper-version": "acme/tone@v1", "x-lorekeeper-request-id": "req-7"}
        if not request.json()["stream"]:
            return Reply(200, json.dumps({"choices": [{"message": {"content": "Ahoy there"}}]}).encode(), headers)
        deltas = [{"choices": [{"delta": {"content": text}}]} for text in ("Ahoy", " there")]
        pieces = [f"data: {json.dumps(delta)}\n\n".encode() for delta in deltas]
        return Reply(200, headers=headers, pieces=(*pieces, b"data: [DONE]\n\n"))

    def _mark(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {API_KEY}":
            return as_json({"error": {"message": "The API key is unknown.", "code": "invalid_api_key"}}, 401)
        if request.json()["request_id"] != "req-7":
            return as_json({"error": {"message": "No such id.", "code": "invalid_feedback"}}, 400)
        return as_json({"object": "feedback", **request.json()}, 202)

    def record(self, action: str) -> None:
        """Append a well-formed audit record to the chain of acme."""
        shown = {
            "seq": len(self.audit) + 1,
            "at": "2026-07-04T10:00:00.000000Z",
            "actor": {"kind": "person", "id": "ada", "name": "Ada"},
            "action": action,
            "object": {"kind": "version", "id": "1", "name": "v1"},
            "before": None,
            "after": {"state": "approved"},
            "reason": "",
            "request_id": "",
            "chain": "acme",
            "source": "10.0.0.1",
            "how": "api",
        }
        payload = json.dumps({**shown, "v": 2}, sort_keys=True, separators=(",", ":"))
        prev = self.audit[-1]["hash"] if self.audit else GENESIS
        digest = hashlib.sha256(f"{prev}\n{payload}".encode()).hexdigest()
        self.audit.append({**shown, "prev_hash": prev, "hash": digest, "payload": payload})

    def sign_audit(self) -> None:
        """Make a signed checkpoint of where the chain stands."""
        head = self.audit[-1]
        said = AuditCheckpoint(chain="acme", seq=head["seq"], head=head["hash"], first=self.audit[0]["hash"])
        text = sign_checkpoint(self.signer, said)
        facts = {"object_key": "audit/acme/x.json", "sha256": "0" * 64, "key_id": self.signer.key_id}
        self.checkpoints.append(({"chain": "acme", "seq": said.seq, "head": said.head, **facts}, text))


def generate_key(folder: Path) -> Path:
    path = folder / "signing.pem"
    generate_key_file(path)
    return path


def _signed_files(files: list[Json]) -> tuple[SignedFile, ...]:
    return tuple(SignedFile(**file) for file in files)


async def _read(scope: Any, receive: Callable[[], Awaitable[Any]]) -> Request:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
    query = parse_qs(scope["query_string"].decode())
    return Request(scope["method"], scope["raw_path"].decode(), query, headers, body)


async def _answer(send: Callable[[Any], Awaitable[None]], reply: Reply) -> None:
    headers = dict(reply.headers)
    if not reply.pieces:
        headers["content-length"] = str(len(reply.body))
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": pairs})
    for piece in reply.pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0.02)
    await send({"type": "http.response.body", "body": reply.body})


@contextmanager
def running(app: FakeRegistry) -> Iterator[FakeRegistry]:
    """Serve on a free loopback port until the end."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        app.url = f"http://127.0.0.1:{port}"
        yield app
    finally:
        server.should_exit = True
        thread.join(10)
