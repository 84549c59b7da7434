"""A provider of OpenID Connect on loopback that says whatever a test wants: honest by default, hostile if told so."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "mlcd", "s+e/c=r%t"
GROUPS = {"mlcd-admins": "admin", "vision": {"role": "runner", "team": "vision", "budget_usd": 50.0}}


def none_of(claims: dict[str, Any], _key: RSAKey) -> str:
    """Signed by nobody."""
    return _parts({"alg": "none"}, claims) + "."


def by_public_key(claims: dict[str, Any], key: RSAKey) -> str:
    """Signed with what everybody knows, as if it were a shared secret."""
    return _by_secret({"alg": "HS256", "kid": key.kid}, claims, key.as_pem(private=False))


def by_client_secret(claims: dict[str, Any], _key: RSAKey) -> str:
    """Signed with what we know, too."""
    return _by_secret({"alg": "HS256"}, claims, SECRET.encode())


def _by_secret(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    parts = _parts(header, claims)
    return f"{parts}.{_in_base64(hmac.digest(secret, parts.encode(), 'sha256'))}"


def _parts(*parts: dict[str, Any]) -> str:
    return ".".join(_in_base64(json.dumps(each).encode()) for each in parts)


def _in_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def by_stranger(claims: dict[str, Any], key: RSAKey) -> str:
    """Signed with another key, which says that it is the known one."""
    return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, RSAKey.generate_key(2048))


def signed(claims: dict[str, Any], key: RSAKey) -> str:
    return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


@dataclass
class Small:
    """What it says, of whom, and what it was asked."""

    issuer: str
    key: RSAKey
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "ada-1", "preferred_username": "Ada"})
    groups: Any = ("mlcd-admins",)
    claims: dict[str, Any] = field(default_factory=dict)
    """In place of what is true; None leaves a claim out."""
    userinfo: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    sign: Callable[[dict[str, Any], RSAKey], str] = signed
    refuses: tuple[int, bytes] | None = None
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def consents(self, url: str) -> dict[str, str]:
        """What a person's browser comes back with from this address."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def rotates(self) -> None:
        """From now on there is another key, and the old one is gone."""
        self.key = RSAKey.generate_key(2048, auto_kid=True)

    def answer(self, path: str, body: str) -> tuple[int, Any]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            endpoints = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "jwks"}
            known = {name: f"{self.issuer}/{where}" for name, where in endpoints.items()}
            more = {"userinfo_endpoint": f"{self.issuer}/me"} if self.userinfo is not None else {}
            ways = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
            return 200, {"issuer": self.issuer, **known, **more, **ways, **self.metadata}
        if path == "/jwks":
            return 200, {"keys": [{"kty": "oct", "k": "AAAA"}, self.key.as_dict(private=False)]}
        if path == "/me":
            return 200, self.userinfo
        return self.token({name: values[0] for name, values in parse_qs(body).items()})

    def token(self, form: dict[str, str]) -> tuple[int, Any]:
        if self.refuses is not None:
            return self.refuses
        asked = self.codes.pop(form.get("code", ""), None)
        told = (form["client_id"], form["client_secret"])
        verified = _in_base64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if asked is None or told != (CLIENT, SECRET) or verified != asked["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": f"code {form.get('code')}"}
        assert form["redirect_uri"] == asked["redirect_uri"]
        now = int(time.time())
        true = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        said = {**true, **self.person, **({"groups": list(self.groups)} if self.groups is not None else {})}
        claims = {name: value for name, value in {**said, **self.claims}.items() if value is not None}
        return 200, {"access_token": "a-c-c-e-s-s", "token_type": "Bearer", "id_token": self.sign(claims, self.key)}


@contextmanager
def small_provider() -> Iterator[Small]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            status, told = small.answer(urlsplit(self.path).path, body)
            sent = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        small = Small(f"http://127.0.0.1:{server.server_port}", RSAKey.generate_key(2048, auto_kid=True))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield small
        server.shutdown()
        thread.join()
