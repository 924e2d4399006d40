"""A provider of identities that speaks OpenID Connect over HTTP: discovery, keys, authorization code with PKCE.

Whoever comes to its authorization endpoint is signed in as ``person`` says.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT_ID, CLIENT_SECRET = "lorekeeper", "a client's secret"


@dataclass
class Provider:
    """What it knows; ``person`` are the claims of whoever signs in next, ``codes`` those given out."""

    person: dict[str, Any] = field(default_factory=dict)
    issuer: str = ""
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to, with a code."""
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        code = secrets.token_urlsafe(16)
        self.codes[code] = {"asked": asked, "person": dict(self.person)}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, given: dict[str, str]) -> dict[str, Any]:
        """Tokens for a code, once, if the verifier is that of the challenge."""
        kept = self.codes.pop(given["code"])
        assert (given["client_id"], given["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest()).rstrip(b"=")
        assert challenge.decode() == kept["asked"]["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, **kept["person"]}
        if "nonce" in kept["asked"]:
            claims["nonce"] = kept["asked"]["nonce"]
        access = secrets.token_urlsafe(16)
        self.tokens[access] = kept["person"]
        token = jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "k1"})
        return {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": token}

    def keys(self) -> dict[str, Any]:
        jwk = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**jwk, "kid": "k1", "use": "sig", "alg": "RS256"}]}


@contextmanager
def serving() -> Iterator[Provider]:
    """One that listens on this machine for as long as the block lasts."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(address.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif address.path == "/userinfo":
                self._answer(provider.tokens[self.headers["Authorization"].removeprefix("Bearer ")])
            elif address.path == "/keys":
                self._answer(provider.keys())
            else:
                self._answer(provider.discovery())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(provider.exchange({name: values[0] for name, values in parse_qs(body).items()}))

        def _answer(self, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_words: Any) -> None:
            """Nothing: tests print what they need."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
