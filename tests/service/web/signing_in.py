"""A service whose members sign in at a small provider, and a browser's part in that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from small_provider import CLIENT, GROUPS, SECRET, Small
from stage import API, PLENTY, Stage, Told, staged

from mlcd.service.sign_in.provider import Provider
from mlcd.service.sign_in.settings import SignInSettings
from mlcd.service.web.state import Limits

OURS = {"x-mlcd": "1", "origin": "http://localhost"}


@contextmanager
def signing_in(home: Path, small: Small, limits: Limits = PLENTY, **changes: Any) -> Iterator[Stage]:
    """A service whose members sign in there."""
    told = {"issuer": small.issuer, "client_id": CLIENT, "name": "Keycloak", "groups": GROUPS, **changes}
    settings = SignInSettings.model_validate(told)
    back = "http://localhost/sign-in/callback"
    with staged(home, limits=limits, provider=lambda now: Provider(settings, SECRET, back, now)) as stage:
        yield stage


def cookie_of(told: Told, name: str) -> str:
    return next(each for each in told.cookies if each.startswith(f"{name}=")).partition(";")[0]


def sent_away(stage: Stage) -> tuple[str, str]:
    """Where the browser goes, and its cookie."""
    told = stage.ask("POST", f"{API}/sign-in", headers=OURS)
    assert told.status == 200, told.body
    return told.json()["url"], cookie_of(told, "mlcd_sign_in")


def come_back(stage: Stage, cookie: str, body: dict[str, str]) -> Told:
    return stage.ask("POST", f"{API}/sign-in/callback", body=body, headers={**OURS, "cookie": cookie})


def entered(stage: Stage, small: Small) -> Told:
    url, cookie = sent_away(stage)
    return come_back(stage, cookie, small.consents(url))


def session_of(told: Told) -> dict[str, str]:
    assert told.status == 204, told.body
    return {"cookie": cookie_of(told, "mlcd_session")}


def me(stage: Stage, session: dict[str, str]) -> Told:
    return stage.ask("GET", f"{API}/me", headers=session)


def done(stage: Stage, *actions: str) -> list[tuple[str, str, str, str]]:
    """From the audit log, the oldest first."""
    entries = reversed(stage.state.audit.entries())
    return [(each.who, each.action, each.outcome, each.detail) for each in entries if each.action in actions]
