"""mlcd ui, service, worker: what they refuse, and that they start, show what is there, and end cleanly."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import pytest

from mlcd.core.home import open_ledger
from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job

pytestmark = pytest.mark.live

PATIENCE_S = 300.0
Mlcd = Callable[..., Any]


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A server in a process of its own, and the lines it has said by the time it listens."""
    command = [sys.executable, "-m", "mlcd", *arguments]
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        with killed_if_silent(process):
            for line in process.stdout:
                said.append(line.strip())
                if re.search(r"MLCD (is at|serves) http", line):
                    break
        yield process, said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def killed_if_silent(process: subprocess.Popen[str]) -> Iterator[None]:
    """Whoever reads from it waits no longer than this."""
    timer = threading.Timer(2 * PATIENCE_S, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def url_of(said: list[str]) -> str:
    return re.findall(r"http://[\w.]+:\d+", said[-1])[0]


def ended(process: subprocess.Popen[str], number: signal.Signals, times: int = 1) -> str:
    """What it says from a signal to its end, which is a good one."""
    for _ in range(times):
        process.send_signal(number)
    assert process.stdout is not None
    with killed_if_silent(process):
        rest = process.stdout.read()
    assert process.wait(PATIENCE_S) == 0, rest
    assert "Traceback" not in rest
    return rest


@pytest.mark.parametrize("command", ["service", "worker"])
def test_without_a_database_one_line_says_what_to_do(command: str, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MLCD_DATABASE_URL", raising=False)
    assert "MLCD_DATABASE_URL" in mlcd(command).complaint
    complaint = mlcd(command, "--database", "mysql://ada:secret@host/mlcd").complaint
    assert "PostgreSQL" in complaint
    assert "secret" not in complaint
    lost = mlcd(command, "--database", "postgresql://ada:secret@127.0.0.1:1/mlcd").complaint
    assert "cannot be reached" in lost
    assert "secret" not in lost


@pytest.mark.parametrize("command", ["service", "worker"])
def test_what_a_service_starts_does_not_find_the_databases_password_in_its_environment(
    command: str, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLCD_DATABASE_URL", "postgresql://ada:secret@127.0.0.1:1/mlcd")
    assert "cannot be reached" in mlcd(command).complaint
    assert "secret" not in " ".join(os.environ.values())


@pytest.mark.parametrize("command", ["service", "worker"])
def test_the_databases_url_may_be_in_a_file_that_nobody_else_can_read(command: str, mlcd: Mlcd, tmp_path: Path):
    file = tmp_path / "database"
    assert "cannot be read" in mlcd(command, "--database-file", file).complaint
    file.write_text("postgresql://ada:secret@127.0.0.1:1/mlcd\n")
    file.chmod(0o640)
    assert f"chmod 600 {file}" in mlcd(command, "--database-file", file).complaint
    file.chmod(0o600)
    lost = mlcd(command, "--database-file", file).complaint
    assert "cannot be reached" in lost
    assert "secret" not in lost


def test_other_commands_read_the_same_file(mlcd: Mlcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "database"
    file.write_text("postgresql://ada:secret@127.0.0.1:1/mlcd\n")
    file.chmod(0o600)
    monkeypatch.setenv("MLCD_DATABASE_URL_FILE", str(file))
    assert "cannot be reached" in mlcd("runs").complaint


@pytest.mark.parametrize("place", ["ray", "functions"])
def test_members_jobs_do_not_run_as_the_services_own_user_unless_the_operator_says_so(
    place: str, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLCD_TRUST_RUNNERS", "")  # the command sets it for its workers
    url = ("--database", "postgresql://ada@127.0.0.1:1/mlcd")
    refused = mlcd("service", *url, "--places", f"simulated,{place}").complaint
    assert "--trust-runners" in refused
    assert place in refused
    for accepted in (("--trust-runners",), ("--workers", "0")):
        assert "cannot be reached" in mlcd("service", *url, "--places", place, *accepted).complaint


@pytest.mark.skipif(os.geteuid() != 0, reason="takes a privilege away from root")
def test_a_root_that_cannot_give_jobs_a_user_of_their_own_refuses_local_too(home: Path):
    command = [sys.executable, "-m", "mlcd", "service", "--database", "postgresql://ada@127.0.0.1:1/x", "--places"]
    confined = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--", *command, "local"]
    refused = subprocess.run(confined, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "root is confined here" in refused.stderr
    assert "--trust-runners" in refused.stderr
    trusted = subprocess.run([*confined, "--trust-runners"], capture_output=True, text=True, check=False)
    assert "cannot be reached" in trusted.stderr


def test_the_state_folder_of_a_service_is_its_own(home: Path, mlcd: Mlcd):
    home.mkdir(exist_ok=True)
    home.chmod(0o755)
    mlcd("service", "--database", "postgresql://ada@127.0.0.1:1/mlcd")
    assert home.stat().st_mode & 0o777 == 0o700


def test_one_persons_pages_are_for_this_machine_alone(mlcd: Mlcd):
    assert "mlcd service" in mlcd("ui", "--host", "0.0.0.0").complaint
    assert "mlcd service" in mlcd("ui", "--host", "example.org").complaint


def test_a_wrong_option_of_the_service_is_one_line(mlcd: Mlcd, tmp_path: Path):
    url = ("--database", "postgresql://ada@127.0.0.1:1/mlcd")
    assert "did you mean 'local'" in mlcd("service", *url, "--places", "simulated,locl").complaint
    assert "without a path" in mlcd("service", *url, "--public-url", "mlcd.example.org").complaint
    assert "no such folder" in mlcd("service", *url, "--recordings", tmp_path / "none").complaint
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert f"port {taken} is taken" in mlcd("service", *url, "--port", taken).complaint


def test_ui_opens_the_browser_on_the_newest_run_and_takes_the_next_free_port(home: Path, tmp_path: Path):
    ledger = open_ledger(home)
    for _ in range(2):
        start(load_job(Path(__file__).parents[2] / "examples" / "resnet50.yaml"), ledger)
    ledger.close()
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new; mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with running("ui", "--port", str(taken), BROWSER=f"{browser} %s", DISPLAY=":0") as (process, said):
            assert f"port {taken} is taken" in said[0]
            url = url_of(said)
            assert url != f"http://127.0.0.1:{taken}"
            until = time.monotonic() + PATIENCE_S
            while not opened.exists():
                assert time.monotonic() < until
                time.sleep(0.01)
            assert opened.read_text().strip() == f"{url}/runs/resnet50-2"
            runs = httpx.get(f"{url}/api/v1/runs", timeout=PATIENCE_S).json()["runs"]
            assert {run["run"] for run in runs} == {"resnet50-1", "resnet50-2"}
            assert ended(process, signal.SIGINT, times=3) == ""  # who is impatient is not punished for it


def test_a_service_makes_its_first_admin_runs_what_is_submitted_within_their_budget_and_ends(
    postgres_url: str, home: Path
):
    job = (Path(__file__).parents[2] / "examples" / "resnet50.yaml").read_text()
    options = ("--port", "0", "--workers", "1", "--count-simulated")
    with running("service", *options, MLCD_DATABASE_URL=postgres_url) as (process, said):
        (token,) = re.findall(r"mlcd_[\w-]{43}", " ".join(said))
        header = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url_of(said), headers=header, timeout=PATIENCE_S) as client:
            assert client.get("/api/v1/runs", headers={"Authorization": "Bearer mlcd_wrong"}).status_code == 401
            assert client.get("/api/v1/me").json()["places"] == ["simulated", "recorded"]  # which run and rent nothing
            monthly = {"budget_usd": 100.0, "budget_per": "month"}
            assert client.patch("/api/v1/members/admin", json=monthly).json()["left_usd"] == 100.0
            sent = client.post("/api/v1/runs", json={"kind": "train", "job": job, "launch": True})
            assert sent.status_code == 202, sent.text
            run = sent.json()["run"]
            until, status = time.monotonic() + PATIENCE_S, ""
            while status != "finished":
                assert time.monotonic() < until, status
                time.sleep(0.2)  # no more often: 600 requests a minute are allowed
                summary = client.get(f"/api/v1/runs/{run}").json()["summary"]
                status = summary["status"]
            refused = client.post("/api/v1/runs", json={"kind": "train", "job": job})
            assert (refused.status_code, refused.json()["left_usd"]) == (
                409,
                pytest.approx(100.0 - summary["spent_usd"]),
            )
            assert client.get("/readyz").json() == {"ready": True, "checks": {"database": "ok", "workers": "ok"}}
            assert 'mlcd_runs{status="finished"} 1.0' in client.get("/metrics").text
            (worker,) = client.get("/api/v1/workers").json()["workers"]
            assert worker["alive"]
            assert worker["process"] != process.pid
        rest = ended(process, signal.SIGTERM)
        assert "at the next start" in rest
        told = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
        assert [each["level"] for each in told if each.get("status") == 401] == ["warning"]
        assert {each["route"] for each in told if "route" in each} >= {"/api/v1/runs", "/api/v1/runs/{run}"}
    ledger = Ledger(postgres_url)
    assert ledger.owners()[run] == ("admin", None)
    ledger.close()


def test_a_service_mails_over_the_server_that_its_operator_names(postgres_url: str, home: Path, tmp_path: Path):
    controller = pytest.importorskip("aiosmtpd.controller", reason="pip install aiosmtpd")
    came: SimpleQueue[Any] = SimpleQueue()

    class Inbox:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            came.put(envelope)
            return "250 OK"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = tmp_path / "mail.toml"
    file.write_text(f'server = "127.0.0.1:{port}"\ntls = "none"\nfrom = "mlcd@example.org"\n')
    file.chmod(0o600)
    receiving = controller.Controller(Inbox(), hostname="127.0.0.1", port=port)
    receiving.start()
    options = ("--port", "0", "--workers", "0", "--mail-file", str(file), "--public-url", "https://mlcd.example.org")
    try:
        with running("service", *options, MLCD_DATABASE_URL=postgres_url) as (process, said):
            (token,) = re.findall(r"mlcd_[\w-]{43}", " ".join(said))
            header = {"Authorization": f"Bearer {token}"}
            listens = re.findall(r"http://[\w.]+:\d+", said[-1])[-1]
            with httpx.Client(base_url=f"{listens}/api/v1", headers=header, timeout=PATIENCE_S) as client:
                number = client.post("/news", json={"address": "admin@example.org"}).json()["number"]
                assert client.post(f"/news/{number}/test", json={}).json() == {"trouble": ""}
            ended(process, signal.SIGTERM)
    finally:
        receiving.stop()
    envelope = came.get(timeout=PATIENCE_S)
    assert (envelope.mail_from, envelope.rcpt_tos) == ("mlcd@example.org", ["admin@example.org"])
    assert b"https://mlcd.example.org" in envelope.content


def test_a_mail_file_that_others_can_read_is_refused(mlcd: Mlcd, tmp_path: Path):
    file = tmp_path / "mail.toml"
    file.write_text('server = "mail.example.org"\nfrom = "mlcd@example.org"\n')
    file.chmod(0o644)
    url = ("--database", "postgresql://ada@127.0.0.1:1/mlcd")
    assert f"chmod 600 {file}" in mlcd("service", *url, "--mail-file", file).complaint


def test_a_provider_needs_the_address_that_it_sends_people_back_to(
    mlcd: Mlcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "oidc.toml"
    file.write_text('issuer = "https://sso.example.org"\nclient_id = "mlcd"\ndefault = "viewer"\n')
    database = ("--database", "postgresql://ada@127.0.0.1:1/mlcd", "--oidc-file", file)
    assert "--oidc-file needs --public-url" in mlcd("service", *database).complaint
    public = ("--public-url", "https://mlcd.example.org")
    assert "cannot be reached" in mlcd("service", *database, *public).complaint
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "authlib", None)
        assert "pip install 'mlcd[oidc]'" in mlcd("service", *database, *public).complaint
    file.write_text("issuer = 7")
    assert f"{file}: issuer: " in mlcd("service", *database, *public).complaint
