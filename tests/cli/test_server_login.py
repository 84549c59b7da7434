"""mlcd login, and mlcd check with a server: what somebody is told who has the wrong address, or the wrong token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Service, a_team, one_person

from mlcd.core.version import VERSION

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
Login = Callable[..., Any]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service to sign in to."""
    with a_team(tmp_path_factory.mktemp("signed-in")) as served:
        yield served


class _Typed:
    """A stdin that is no terminal; whether anybody has read it."""

    def __init__(self, line: str) -> None:
        self._line, self.read = line, False

    def readline(self) -> str:
        self.read = True
        return self._line

    def isatty(self) -> bool:
        return False


@pytest.fixture
def login(mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> Login:
    """`mlcd login` with this on stdin."""

    def run(typed: str | _Typed, *arguments: object) -> Any:
        monkeypatch.setattr("sys.stdin", _Typed(typed) if isinstance(typed, str) else typed)
        return mlcd("login", *arguments)

    return run


def test_signing_in_keeps_the_token_and_signing_out_forgets_it(
    service: Service, mlcd: Mlcd, login: Login, home: Path
) -> None:
    token = service.tokens["vic"]
    assert "the token is not valid there" in login("mlcd_" + "y" * 43, service.url).complaint
    assert not (home / "servers.json").exists()
    answer = login(f"{token}\n", f"{service.url}/api/v1/")
    assert answer.out == f"Signed in to {service.url} as vic, viewer.\n"
    assert json.loads((home / "servers.json").read_text()) == {service.url: token}
    assert mlcd("--server", service.url, "runs").code == 0
    assert mlcd("login", service.url, "--forget").code == 0
    assert "no token is stored" in mlcd("login", service.url, "--forget").complaint
    assert "you are not signed in there" in mlcd("--server", service.url, "runs").complaint
    assert token not in answer.out + answer.err


def test_a_token_that_was_renewed_says_so_and_a_new_one_takes_its_place(
    service: Service, mlcd: Mlcd, login: Login, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ruler = ("--server", service.url, "team")
    monkeypatch.setenv("MLCD_TOKEN", service.tokens["root"])
    first = mlcd(*ruler, "add", "nora", "-o", "json").document["token"]
    assert "MLCD_TOKEN is set, and overrides this token." in login(first, service.url).out
    second = mlcd(*ruler, "token", "nora", "-o", "json").document["token"]
    monkeypatch.delenv("MLCD_TOKEN")
    complaint = mlcd("--server", service.url, "runs").complaint
    assert f"the token in {home}/servers.json is not valid there: it was renewed" in complaint
    assert complaint.endswith(f"get a new one from an admin, then: mlcd login {service.url}")
    assert login(second, service.url, "-o", "json").document["name"] == "nora"
    assert mlcd("--server", service.url, "runs").code == 0


def test_a_wrong_address_is_told_before_a_token_is_typed(
    service: Service, login: Login, mlcd: Mlcd, tmp_path: Path
) -> None:
    with one_person(tmp_path / "ui") as alone:
        wrong = {
            service.url.replace("http:", "https:"): "does not speak TLS, though its address is https://; try http://",
            service.url.removeprefix("http://"): "expected an address, such as http://localhost:8421",
            f"{service.url}/runs": f"not an MLCD server; try {service.url}",
            "http://127.0.0.1:1": "cannot be reached, nobody answers",
            alone.url: "this is mlcd ui, which needs no token; use it",
        }
        for url, words in wrong.items():
            stdin = _Typed(service.tokens["vic"])
            assert words in login(stdin, url).complaint
            assert not stdin.read
            if url != alone.url:
                assert words in mlcd("--server", url, "runs").complaint
    assert "no token was given" in login("\n", service.url).complaint


def test_the_server_that_is_named_for_all_commands_is_the_one_to_sign_in_to(
    service: Service, login: Login, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Missing argument 'URL'" in login("").complaint
    monkeypatch.setenv("MLCD_SERVER", service.url)
    assert login(service.tokens["ada"]).out == f"Signed in to {service.url} as ada, runner.\n"
    assert mlcd("runs").code == 0
    assert mlcd("login", "--forget").out == f"Deleted the token of {service.url}.\n"


def test_check_says_as_whom_one_is_known_and_what_to_do_otherwise(
    service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def server(*url: str) -> tuple[int, Any]:
        answer = mlcd("--server", *url, "check", "-o", "json")
        return answer.code, answer.document["checks"][-1]

    monkeypatch.setenv("MLCD_TOKEN", service.tokens["poor"])
    code, told = server(service.url)
    assert (code, told["ok"], told["to_do"]) == (0, True, "")
    assert told["found"].startswith(
        f"{service.url}: MLCD {VERSION}, you are poor, runner, $1.00 left; jobs run on simulated, "
    )
    assert told["found"].endswith("recorded:char-rnn, recorded:device")
    assert service.tokens["poor"] not in told["found"]
    monkeypatch.delenv("MLCD_TOKEN")
    code, told = server(service.url)
    assert (code, told["ok"]) == (1, False)
    assert told["found"] == f"{service.url}: you are not signed in there"
    assert told["to_do"] == f"get a token from an admin, then: mlcd login {service.url}"
    code, told = server("http://127.0.0.1:1")
    assert (code, told["to_do"]) == (1, "is it running, and is the address right?")
