"""A person signs in at a real provider, in a real browser, and comes back to the page that they wanted."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mlcd_fixtures.oidc_provider import CLIENT, SECRET, oidc_provider

pytest.importorskip("procrastinate", reason="pip install 'mlcd[service]'")

pytestmark = pytest.mark.live
GROUPS = {"grace": ["vision"], "eve": ["staff"]}


@dataclass
class Team:
    """A service whose members sign in at a provider; the token of its first admin."""

    url: str
    admin: str


@pytest.fixture(scope="module")
def team(serve: Any, running_postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder, port = tmp_path_factory.mktemp("signs-in"), free_port()
    url = f"http://127.0.0.1:{port}"
    with oidc_provider(f"{url}/sign-in/callback", GROUPS) as issuer:
        file = settings_in(folder, issuer)
        database = running_postgres.new_database()
        words = ("service", "--port", port, "--workers", "0", "--public-url", url, "--oidc-file", file)
        served = serve(folder / "state", *words, MLCD_DATABASE_URL=database)
        yield Team(url, re.findall(r"mlcd_[\w-]{43}", "".join(served.first_words))[0])


def settings_in(folder: Path, issuer: str) -> Path:
    """The operator's file, and the client's secret beside it."""
    secret, file = folder / "secret", folder / "oidc.toml"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    file.write_text(f"""\
issuer = "{issuer}"
client_id = "{CLIENT}"
client_secret_file = "secret"
name = "Lab SSO"
scopes = ["openid", "profile", "groups"]

[groups]
vision = {{ role = "runner", team = "vision" }}
""")
    return file


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def sign_in(page: Any, team: Team, name: str, at: str) -> None:
    page.goto(team.url + at)
    page.get_by_role("button", name="Sign in with Lab SSO").click()
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_a_person_comes_back_signed_in_to_the_page_that_they_wanted_and_signs_out(page, team, expect):
    sign_in(page, team, "grace", "/offers?text=g4dn")
    expect(page.get_by_role("heading", name="Offers")).to_be_visible()
    assert page.url == f"{team.url}/offers?text=g4dn"
    page.locator(".who summary").click()
    expect(page.locator(".who-more")).to_contain_text("runner in vision")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in with Lab SSO")).to_be_visible()
    assert page.context.request.get(f"{team.url}/api/v1/me").status == 401


def test_who_may_not_come_in_is_told_why_on_the_page_and_the_address_has_no_code(page, team, expect):
    sign_in(page, team, "eve", "/")
    expect(page.get_by_role("alert")).to_contain_text("eve is in no group that may use MLCD; ask an admin of Lab SSO")
    assert page.url == f"{team.url}/sign-in/callback"
    page.get_by_text("Sign in with a token").click()
    page.get_by_label("Token").fill(team.admin)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert page.url == f"{team.url}/"


def test_the_command_line_says_where_to_make_a_token(team, tmp_path):
    command = [sys.executable, "-m", "mlcd", "login", team.url]
    done = subprocess.run(
        command, env={**os.environ, "MLCD_HOME": str(tmp_path)}, input="\n", capture_output=True, text=True
    )
    assert f"no token was given; to make one, sign in with Lab SSO at {team.url}/tokens" in done.stderr


def test_a_link_that_somebody_else_made_signs_nobody_in(page, team, expect):
    page.goto(f"{team.url}/sign-in/callback?code=theirs&state=theirs")
    expect(page.get_by_role("alert")).to_contain_text("this sign-in was begun in another browser")
    assert httpx.get(f"{team.url}/api/v1/health").json()["provider"] == "Lab SSO"
