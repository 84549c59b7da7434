"""A real OpenID Connect provider in its own process, and a user who signs in there without a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

CLIENT, SECRET = "mlcd", "a secret + of/the client, 100 %"
SCRIPT = Path(__file__).with_suffix(".mjs")
MOST_PAGES = 12
TAKEN = ("code", "state", "iss", "error")  # by our page, of what is in the address


@contextmanager
def oidc_provider(redirect_uri: str, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Its issuer; `groups`: of each person by their name. Skips where it is not installed."""
    node, package = shutil.which("node"), _package()
    if node is None or package is None:
        pytest.skip("no provider: npm install --prefix .npm oidc-provider@9")
    words = [node, str(SCRIPT), str(package), CLIENT, SECRET, redirect_uri, json.dumps(groups)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            issuer = process.stdout.readline().strip()
            assert issuer.startswith("http://127.0.0.1:"), issuer
            yield issuer
        finally:
            process.kill()


def _package() -> Path | None:
    folders = (each / ".npm" / "node_modules" / "oidc-provider" for each in Path(__file__).parents)
    return next((each for each in folders if each.is_dir()), None)


def sign_in_at(url: str, name: str, redirect_uri: str) -> dict[str, str]:
    """Go through the provider's pages as this person, by their forms; what the browser comes back with."""
    with httpx.Client(timeout=60, follow_redirects=False) as browser:
        answer = browser.get(url)
        for _ in range(MOST_PAGES):
            if answer.is_redirect:
                where = str(answer.url.join(answer.headers["location"]))
                if where.startswith(redirect_uri):
                    return {name: value for name, value in parse_qsl(urlsplit(where).query) if name in TAKEN}
                answer = browser.get(where)
                continue
            form = re.search(r'<form[^>]*action="([^"]+)"[^>]*>(.*?)</form>', answer.text, re.DOTALL)
            assert form is not None, answer.text[:2_000]
            fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[2]))
            typed = {"login": name, "password": "any"} if 'name="login"' in form[2] else {}
            answer = browser.post(unescape(form[1]), data={**fields, **typed})
    raise AssertionError(f"still not back after {MOST_PAGES} pages")
