"""Attacks on sign-in at an OpenID provider: forged callbacks, replays, links of other sites, lying providers.

Against a second service, whose provider is the fake one of the tests: it says whatever an attacker wants.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from attacks.target import Finding, Target, WaitingClient, free_port, target

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service" / "web"))

OURS = {"X-MLCD": "1"}
SETTINGS = """\
issuer = "{issuer}"
client_id = "mlcd"
client_secret_file = "secret"
name = "SSO"

[groups]
mlcd-admins = "admin"
vision = "runner"
"""
ELSEWHERE = ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "%2f%2fevil.example")

TAKEN = ("admin", "ADMIN", "victor", "Victor", "admin\u200b", "\u212aaren")


@dataclass
class SignIns:
    """A service whose members sign in at a provider, and that provider."""

    at: Target
    small: Any
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def browser(self) -> httpx.Client:
        """The browser of an unknown person with its own address, so that rate limits hit only the attacker."""
        address = f"10.{next(self.numbers)}.0.1"
        headers = {"X-Forwarded-For": address}
        return httpx.Client(
            base_url=f"{self.at.address}/api/v1", headers=headers, timeout=60, transport=WaitingClient()
        )

    def begun(self, browser: httpx.Client) -> dict[str, str]:
        """The callback from the provider after this browser was sent there."""
        answer = browser.post("/sign-in", headers=OURS)
        answer.raise_for_status()
        return dict(self.small.consents(answer.json()["url"]))

    def entered(self, browser: httpx.Client, body: dict[str, Any], headers: dict[str, str] | None = None) -> str:
        """The status of a callback that got a session; '' if it was refused."""
        answer = browser.post("/sign-in/callback", json=body, headers=OURS if headers is None else headers)
        got_in = answer.is_success or "mlcd_session" in answer.headers.get("set-cookie", "")
        return f"{answer.status_code}, {browser.get('/me').json().get('name')}" if got_in else ""


@contextmanager
def _signing_in() -> Iterator[SignIns]:
    from small_provider import SECRET, small_provider

    with small_provider() as small, tempfile.TemporaryDirectory(prefix="mlcd-attack-sso-") as folder:
        file, secret, port = Path(folder) / "oidc.toml", Path(folder) / "secret", free_port()
        file.write_text(SETTINGS.format(issuer=small.issuer))
        secret.write_text(SECRET)
        secret.chmod(0o600)
        words = ("--port", str(port), "--public-url", f"http://127.0.0.1:{port}", "--oidc-file", str(file))
        with target(*words) as at:
            yield SignIns(at, small)


def sign_ins(_: Target) -> Finding:
    """Run all of them, on their own service."""
    with _signing_in() as signing:
        through: list[str] = []
        tried = 0
        for attack in (_forged, _replayed, _from_other_sites, _lying_provider, _taken_names, _redirects):
            for name, got in attack(signing):
                tried += 1
                through += [f"{name} ({got})"] if got else []
        honest = _legitimate(signing)
        log = signing.at.log.read_text()
    kept = [word for word in ("code-0", "a-c-c-e-s-s", "eyJ", "s+e/c=r%t") if word in log]
    words = f"{tried} tries; through: {through}; in the log: {kept}; an honest sign-in: {honest or 'REFUSED'}"
    return Finding(not through and not kept and bool(honest) and tried > 0, words)


def _legitimate(signing: SignIns) -> str:
    """A legitimate member can sign in: the service does not simply refuse everybody."""
    signing.small.person = {"sub": "grace-1", "preferred_username": "grace"}
    with signing.browser() as browser:
        return signing.entered(browser, signing.begun(browser))


def _forged(signing: SignIns) -> Iterator[tuple[str, str]]:
    """Callbacks of sign-ins that were never started, or in another browser: login CSRF, fixation, guesses."""
    with signing.browser() as attacker, signing.browser() as victim:
        answer = signing.begun(attacker)
        yield "the attacker's answer in the victim's browser", signing.entered(victim, answer)
        signing.begun(victim)
        yield "the same, while the victim signs in", signing.entered(victim, answer)
    bodies = ({"state": ""}, {"state": "x", "code": "x"}, {"state": "%00", "code": "' OR 1=1 --"}, {"state": "x" * 200})
    for body in bodies:
        with signing.browser() as browser:
            signing.begun(browser)
            yield f"a made-up answer {json.dumps(body)[:40]}", signing.entered(browser, body)
    with signing.browser() as browser:
        answer = signing.begun(browser)
        browser.cookies.set("mlcd_sign_in", "mlcd_" + "A" * 43)
        yield "a made-up cookie", signing.entered(browser, answer)


def _replayed(signing: SignIns) -> Iterator[tuple[str, str]]:
    """A state, a code or a whole callback, used again."""
    signing.small.groups = ("nobody",)
    with signing.browser() as browser:
        answer, cookie = signing.begun(browser), dict(browser.cookies)
        signing.entered(browser, answer)
        signing.small.groups = ("mlcd-admins",)
        again = {"an answer, again": answer, "its state, with another code": {**answer, "code": "code-9"}}
        for name, body in again.items():
            browser.cookies.update(cookie)
            yield name, signing.entered(browser, body)
        later = signing.begun(browser)
        yield "a used code in a new sign-in", signing.entered(browser, {**later, "code": answer["code"]})
    with signing.browser() as first, signing.browser() as second:
        stolen, own = signing.begun(first), signing.begun(second)
        yield "a stolen code with one's own state", signing.entered(second, {**stolen, "state": own["state"]})


def _from_other_sites(signing: SignIns) -> Iterator[tuple[str, str]]:
    """Requests by a page of another site, and links that a person is made to open."""
    lies: tuple[dict[str, str], ...] = (
        {},
        {**OURS, "Origin": "https://evil.example"},
        {**OURS, "Sec-Fetch-Site": "cross-site"},
        {**OURS, "Host": "evil.example"},
    )
    for lie in lies:
        with signing.browser() as browser:
            answer = signing.begun(browser)
            yield f"back with {lie}", signing.entered(browser, answer, lie)
            begun = browser.post("/sign-in", headers=lie)
            yield f"begun with {lie}", str(begun.status_code) if begun.is_success else ""
            query = f"?code={answer['code']}&state={answer['state']}"
            for path in (f"/sign-in/callback{query}", f"{signing.at.address}/sign-in/callback{query}"):
                opened = browser.get(path, headers=lie)
                yield f"opened with {lie}", opened.headers.get("set-cookie", "")


def _lying_provider(signing: SignIns) -> Iterator[tuple[str, str]]:
    """Forged or expired tokens, tokens of another person, and answers of another provider."""
    from small_provider import by_client_secret, by_public_key, by_stranger, none_of, signed

    small, now = signing.small, int(time.time())
    small.person = {"sub": "mallory-1", "preferred_username": "mallory2"}
    for sign in (none_of, by_public_key, by_client_secret, by_stranger):
        small.sign = sign
        yield f"a token {sign.__name__}", _by_new_browser(signing)
    small.sign = signed
    wrong = ({"aud": "other"}, {"iss": "https://evil.example"}, {"nonce": "old"}, {"exp": now - 600}, {"azp": "other"})
    for claims in (*wrong, {"nonce": None}, {"sub": None}, {"aud": ["mlcd", "other"]}):
        small.claims = claims
        yield f"a token with {claims}", _by_new_browser(signing)
    small.claims = {}
    yield "an answer of another provider", _by_new_browser(signing, iss="https://evil.example")


def _taken_names(signing: SignIns) -> Iterator[tuple[str, str]]:
    """Accounts with the names of existing members, and invalid names."""
    for name in (*TAKEN, "x' OR '1'='1", "<script>", "../../admin", "a" * 61):
        signing.small.person = {"sub": f"of {name}", "preferred_username": name}
        yield f"somebody called {name[:20]!r}", _by_new_browser(signing)


def _redirects(signing: SignIns) -> Iterator[tuple[str, str]]:
    """Redirects to another site."""
    with signing.browser() as browser:
        for where in ELSEWHERE:
            for name in ("next", "redirect_uri", "return_to", "url"):
                for path in ("/sign-in", "/sign-in/callback"):
                    answer = browser.get(f"{signing.at.address}{path}?{name}={quote(where)}")
                    yield f"{path}?{name}={where}", answer.headers.get("location", "")
            begun = browser.post(f"/sign-in?redirect_uri={quote(where)}&next={quote(where)}", headers=OURS)
            yield f"begun for {where}", "evil" * ("evil" in begun.text)
            body = {"state": "x", "next": where}
            yield f"back to {where}", signing.entered(browser, body)


def _by_new_browser(signing: SignIns, **more: str) -> str:
    with signing.browser() as browser:
        return signing.entered(browser, {**signing.begun(browser), **more})
