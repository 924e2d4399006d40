"""A receiver of webhooks on this machine: it keeps what came, and answers as it is told to."""

import base64
import hashlib
import hmac
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """``drip_s``: it sends byte by byte with such a pause; ``hangs_up``: it ends without an answer."""

    status: int = 204
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drip_s: float = 0.0
    hangs_up: bool = False


@dataclass(frozen=True, slots=True)
class Came:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: str

    def is_signed_with(self, secret: bytes) -> bool:
        """As the document tells receivers to check it."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        mine = "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
        return mine in self.headers["webhook-signature"].split()


class Receiver:
    """``replies`` are given in turn, and then ``otherwise`` for ever."""

    def __init__(self) -> None:
        self.came: list[Came] = []
        self.replies: list[Reply] = []
        self.otherwise = Reply()
        self.url = ""
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[str]:
        return [each.headers["webhook-id"] for each in self.came]

    def take(self, came: Came) -> Reply:
        with self._lock:
            self.came.append(came)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            return self.replies.pop(0) if self.replies else self.otherwise

    def done(self) -> None:
        with self._lock:
            self._now -= 1


@contextmanager
def receiving(*, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = receiver.take(Came("POST", self.path, headers, body, self.client_address[0]))
            try:
                self._answer(reply)
            except OSError:
                pass  # whoever asked has gone
            finally:
                receiver.done()

        do_GET = do_POST  # noqa: N815  the names that the server calls

        def _answer(self, reply: Reply) -> None:
            time.sleep(reply.delay_s)
            if reply.hangs_up:
                self.connection.close()
                return
            lines = {"Content-Length": str(len(reply.body)), "Connection": "close", **reply.headers}
            head = f"HTTP/1.1 {reply.status} Yes\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            whole = head.encode() + b"\r\n" + reply.body
            if not reply.drip_s:
                self.wfile.write(whole)
                return
            for number in range(len(whole)):
                self.wfile.write(whole[number : number + 1])
                time.sleep(reply.drip_s)

        def log_message(self, *_facts: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.url = f"{'https' if tls else 'http'}://{host}:{server.server_address[1]}/events"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
