"""`mlcd news`: an admin adds a webhook, sees that a test arrives, or why not, and removes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from served import Service, a_team

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with a_team(tmp_path_factory.mktemp("news")) as served:
        yield served


@pytest.fixture
def using(service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> Mlcd:
    """A command against the service with this token."""

    def run(token: str, *arguments: object) -> Any:
        monkeypatch.setenv("MLCD_TOKEN", token)
        return mlcd("--server", service.url, "news", *arguments)

    return run


@pytest.fixture
def heard() -> Iterator[tuple[str, list[Any]]]:
    """The address of a receiver, and what it has heard; a path that ends in 'gone' is answered 410."""
    told: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(410 if self.path.endswith("gone") else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", told
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_added_tried_and_removed(using: Mlcd, service: Service, heard: tuple[str, list[Any]]) -> None:
    url, told = heard
    admin = service.tokens["root"]
    made = using(admin, "add", url + "key", "--event", "failed", "--name", "ops", "-o", "json").document
    number, secret = made["number"], made["secret"]
    assert len(secret) > 30
    assert "The test message was accepted" in using(admin, "test", number).out
    assert told[0]["event"] == "test"
    listed = using(admin, "list").out
    assert "ops" in listed
    assert "everybody" in listed
    assert "failed" in listed
    assert secret not in listed
    assert f"Receiver {number} gets no more news" in using(admin, "remove", number).out
    assert f"unknown receiver '{number}'" in using(admin, "remove", number).complaint


def test_why_a_test_did_not_arrive_is_said(using: Mlcd, service: Service, heard: tuple[str, list[Any]]) -> None:
    admin = service.tokens["root"]
    shown = using(admin, "add", f"{heard[0]}gone", "--slack", "--member", "ada").out
    number = shown.splitlines()[0].split("receiver ")[1].split(".")[0]
    failed = using(admin, "test", number)
    assert failed.code == 2
    assert "the test message did not arrive: http://127.0.0.1:" in failed.complaint
    assert "answered 410" in failed.complaint
    assert using(admin, "remove", number).code == 0


def test_others_have_their_own_mail_alone(using: Mlcd, service: Service, heard: tuple[str, list[Any]]) -> None:
    ada = service.tokens["ada"]
    assert "Nobody gets news. Get yours by mail: mlcd news add" in using(ada, "list").out
    assert "ada is a runner; this needs an admin" in using(ada, "add", heard[0]).complaint
    assert "this service sends no mail" in using(ada, "add", "ada@example.org").complaint
    assert "--everybody" in using(ada, "add", heard[0], "--everybody", "--team", "x").complaint
    assert "--slack" in using(ada, "add", "ada@example.org", "--slack").complaint


def test_without_a_server_it_says_what_to_do(mlcd: Mlcd, tmp_path: Path) -> None:
    assert "mlcd --server URL news" in mlcd("news", "list").complaint
