"""`mlcd token`: a member makes, rotates and ends tokens for programs, which may what their scope says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Service, a_team

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
TOKEN = re.compile(r"mlcd_[\w-]{43}")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with a_team(tmp_path_factory.mktemp("tokens")) as served:
        yield served


@pytest.fixture
def using(service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> Mlcd:
    """A command against the service with this token."""

    def run(token: str, *arguments: object) -> Any:
        monkeypatch.setenv("MLCD_TOKEN", token)
        return mlcd("--server", service.url, *arguments)

    return run


def test_a_token_for_ci_is_made_used_rotated_and_revoked(using: Mlcd, service: Service) -> None:
    ada = service.tokens["ada"]
    made = using(ada, "token", "add", "ci", "--days", 30)
    (first,) = TOKEN.findall(made.out)
    assert using(first, "runs").code == 0
    listed = using(ada, "token", "list")
    assert re.search(r"ci +read .*\d{4}-\d\d-\d\d \d\d:\d\d", listed.out)
    assert "mlcd_" not in listed.out
    second = using(ada, "token", "rotate", "ci", "-o", "json").document["token"]
    assert "the token" in using(first, "runs").complaint
    assert using(second, "runs").code == 0
    assert "ci is revoked" in using(ada, "token", "revoke", "ci").out
    assert "the token" in using(second, "runs").complaint
    assert "You have no named tokens" in using(ada, "token", "list").out


def test_a_token_that_may_read_cannot_run_nor_make_another(using: Mlcd, service: Service) -> None:
    made = using(service.tokens["ada"], "token", "add", "looks", "-o", "json").document["token"]
    refused = "token 'looks' of ada may read"
    assert refused in using(made, "token", "add", "more").complaint
    assert refused in using(made, "token", "renew").complaint
    assert refused in using(made, "train", Path(__file__).parents[2] / "examples" / "resnet50.yaml", "-y").complaint


def test_a_member_renews_their_own_token_and_it_is_stored_where_the_old_one_was(
    using: Mlcd, service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = TOKEN.findall(using(service.tokens["ada"], "token", "renew").out)
    assert len(new) == 1
    service.tokens["ada"] = new[0]
    monkeypatch.delenv("MLCD_TOKEN")
    monkeypatch.setattr("sys.stdin", _typed(new[0]))
    assert mlcd("login", service.url).code == 0
    assert "Stored a new token of ada" in mlcd("--server", service.url, "token", "renew").out
    assert mlcd("--server", service.url, "token", "list").code == 0
    assert "the token" in using(new[0], "runs").complaint


def test_a_new_token_of_one_member_does_not_replace_the_stored_one_of_another(
    using: Mlcd, service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLCD_TOKEN", raising=False)
    monkeypatch.setattr("sys.stdin", _typed(service.tokens["poor"]))
    assert mlcd("login", service.url).code == 0
    new = TOKEN.findall(using(service.tokens["vic"], "token", "renew").out)
    assert len(new) == 1
    service.tokens["vic"] = new[0]
    monkeypatch.delenv("MLCD_TOKEN")
    renewed = mlcd("--server", service.url, "token", "renew", "-o", "json").document
    assert renewed["member"] == "poor"
    assert "token" not in renewed, "it is stored where the old one was"


def test_what_is_wrong_is_one_line(using: Mlcd, service: Service, mlcd: Mlcd) -> None:
    vic = service.tokens["vic"]
    assert "you have no token 'zoe'; your tokens: none" in using(vic, "token", "revoke", "zoe").complaint
    assert "no token '../me'" in using(vic, "token", "rotate", "../me").complaint
    assert "a name has up to 60" in using(vic, "token", "add", "C I").complaint
    assert "mlcd --server URL token" in mlcd("token", "list").complaint


def _typed(text: str) -> Any:
    from io import StringIO

    return StringIO(text + "\n")
