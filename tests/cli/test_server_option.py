"""`mlcd --server URL`: every command against the service itself, on a port of loopback."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mlcd.cli.server import HERE
from mlcd.clock import VirtualClock
from mlcd.ledger import Ledger, Stopped
from mlcd.remote import Order, RemoteLedger, Server, submit, watch
from mlcd.team import Audit, Members, Role
from mlcd.testing.recorded_services import write_device
from mlcd.version import VERSION

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
EXAMPLES = Path(__file__).parents[2] / "examples"
ALONE = "{nodes: 1..2, instances: [c5.xlarge, g4dn.xlarge], earlier: false}"
"""A search that what others have run before does not change."""


@dataclass
class Service:
    """A service under way: where it is, its ledger, its members' tokens, and a recording that it knows as `device`."""

    url: str
    ledger: Ledger
    tokens: dict[str, str]
    device: Path


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The app, on a free port of loopback."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service, with workers of its own; ada runs, vic views, poor has a dollar."""
    from mlcd.web.app import create_app
    from mlcd.web.feed import Feed
    from mlcd.web.settings import Settings
    from mlcd.web.state import State
    from mlcd.workers import Here

    folder = tmp_path_factory.mktemp("service")
    device = write_device(folder / "device")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLCD_HOME", str(folder))
        ledger = Ledger(folder / "ledger.db")
        members, audit = (kind(ledger.database, lambda: datetime.now(UTC)) for kind in (Members, Audit))
        tokens = {"ada": members.add("ada", Role.RUNNER), "vic": members.add("vic", Role.VIEWER)}
        tokens["poor"] = members.add("poor", Role.RUNNER, budget_usd=1.0)
        crew = Here(ledger)
        settings = Settings("service", folder, recordings={"device": device})
        with listening(create_app(State(ledger, ledger.database, crew, members, audit, settings, Feed(ledger)))) as url:
            yield Service(url, ledger, tokens, device)
        crew.close()
        ledger.close()


@pytest.fixture
def there(service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> Mlcd:
    """Runs a command line of ada's against the service."""
    assert service.ledger.path is not None
    folder = str(service.ledger.path.parent)

    def run(*arguments: object) -> Any:
        with monkeypatch.context() as patch:
            patch.setenv("MLCD_TOKEN", service.tokens["ada"])
            patch.setenv("MLCD_HOME", folder)  # of the workers, which are children of this process
            return mlcd("--server", service.url, *arguments)

    return run


def plain(text: str) -> str:
    """Without the run's number."""
    return re.sub(r"\b(demo|net-a|elastic-resnet50|mobilenet)-\d+", r"\1-N", text)


def same(here: Any, away: Any, code: int = 0) -> None:
    assert (here.code, away.code) == (code, code), away
    assert plain(away.err) == plain(here.err)
    assert plain(away.out) == plain(here.out)


@pytest.mark.parametrize(
    ("limits", "code"), [("", 0), ("budget: $0.01", 3)], ids=["run to its end", "cannot be certified"]
)
def test_a_run_there_prints_what_a_run_here_prints(
    there: Mlcd, mlcd: Mlcd, write_job: WriteJob, limits: str, code: int
) -> None:
    job = write_job(limits, search=ALONE)
    same(mlcd("train", job, "-y"), there("train", job, "-y"), code)


def test_options_reach_the_server_as_they_were_written(there: Mlcd, mlcd: Mlcd, write_job: WriteJob) -> None:
    options = ("--budget", "$20", "--deadline", "1d 4h", "--nodes", "1..2", "--instances", "c5*", "--seed", "3")
    job = write_job("goal: cheapest", search=ALONE)
    arguments = ("train", job, *options, "--early-look", "none", "--parallel", "2", "--decide-only", "-o", "json")
    here, away = mlcd(*arguments), there(*arguments)
    assert here.code == away.code == 0
    left_out = ("run", "started_at", "ended_at")
    expected, told = ({k: v for k, v in each.document.items() if k not in left_out} for each in (here, away))
    assert told == expected


def test_elastic_runs_print_the_same_there(there: Mlcd, mlcd: Mlcd) -> None:
    arguments = ("scale", EXAMPLES / "elastic-resnet50.yaml", "--on", "simulated", "--workers", "1..2", "-y")
    same(mlcd(*arguments), there(*arguments))


def test_runs_on_functions_print_the_same_there(there: Mlcd, mlcd: Mlcd) -> None:
    job = EXAMPLES / "functions" / "mobilenet.yaml"
    arguments = ("tune", job, "--trials", "2", "--on", "functions:simulated", "--budget", "50", "--storage", "s3")
    same(mlcd(*arguments, "--decide-only"), there(*arguments, "--decide-only"))


def test_a_recorded_model_is_served_the_same_there(there: Mlcd, mlcd: Mlcd, service: Service) -> None:
    options = ("--latency-p95", "20ms", "--trials", "3")
    here = mlcd("serve", "net_a", "--on", f"recorded:{service.device}", *options)
    same(here, there("serve", "net_a", "--on", "recorded:device", *options))


@pytest.fixture(scope="module")
def decided(service: Service) -> str:
    """A run of ada's on the service that has decided, and waits."""
    text = f"name: waits\nrun: python train.py\nmlcd: {{work: 1M, flops_per_sample: 12G, search: {ALONE}}}\n"
    server = Server(service.url, service.tokens["ada"])
    run = submit(server, Order("train", {"goal": "cheapest"}, text), launch=False)
    assert list(watch(RemoteLedger(server), run, lambda rests: rests))
    server.close()
    return run


READING = (
    ("show", "RUN"),
    ("show", "RUN", "-o", "json"),
    ("ledger", "RUN"),
    ("what-if", "RUN", "--budget", "30", "--goal", "cheapest"),
    ("what-if", "RUN", "--deadline", "1m", "-o", "json"),
    ("export", "RUN", "--to", "skypilot"),
    ("curves", "RUN"),
    ("offers", "--gpu", "V100", "--sort", "memory"),
    ("offers", "--instances", "c5.*", "-o", "json"),
    ("models",),
    ("models", "-o", "json"),
)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_what_is_read_from_a_server_is_what_its_ledger_says(
    arguments: tuple[str, ...],
    there: Mlcd,
    mlcd: Mlcd,
    service: Service,
    decided: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = [decided if each == "RUN" else each for each in arguments]
    away = there(*said)
    assert service.ledger.path is not None
    monkeypatch.setenv("MLCD_HOME", str(service.ledger.path.parent))
    here = mlcd(*said)
    assert (away.code, away.out, away.err) == (here.code, here.out, here.err)


def test_the_list_of_runs_and_a_report_come_from_the_server(there: Mlcd, decided: str, service: Service) -> None:
    listed = there("runs", "-o", "json").document["runs"]
    assert [each["run"] for each in listed] == service.ledger.runs()
    assert decided in there("runs").out
    assert there("report", decided, "--to", "page.html").code == 0
    assert decided in Path("page.html").read_text()


def test_a_decision_is_launched_and_watched_and_cannot_be_launched_again(there: Mlcd, write_job: WriteJob) -> None:
    run = there("train", write_job(search=ALONE), "--decide-only", "-o", "json").document["run"]
    resumed = there("resume", run, "--decide-only")
    assert resumed.code == 0
    assert f"Not run. Run it with: mlcd launch {run}" in resumed.out
    launched = there("launch", run)
    assert launched.code == 0, launched
    assert "Final run: " in launched.out
    watched = there("watch", run)
    assert watched.code == 0
    assert launched.err.strip().splitlines()[-1] in watched.err
    assert "Final run: " in watched.out
    assert f"run '{run}' is finished" in there("launch", run).complaint
    assert f"run '{run}' is finished; there is nothing to resume" in there("resume", run).complaint


def test_a_run_that_was_stopped_goes_on_to_its_decision_and_then_to_its_end(
    there: Mlcd, service: Service, decided: str
) -> None:
    submitted = service.ledger.asked(decided)
    assert submitted is not None
    run = service.ledger.ask("halted", submitted.asked, "ada")
    book = service.ledger.begin("halted", VirtualClock(), service.ledger.lines(decided)[0].entry, run=run)
    book.write(Stopped("the user stopped"))
    resumed = there("resume", run, "--decide-only")
    assert resumed.code == 0, resumed
    assert "search ended: " in resumed.err
    assert "Decision (simulated): " in resumed.out
    finished = there("resume", run, "-y")
    assert finished.code == 0, finished
    assert "Decision (simulated): " in finished.out
    assert "Final run: " in finished.out


def test_a_run_of_this_machine_can_be_watched_too(mlcd: Mlcd, write_job: WriteJob) -> None:
    run = mlcd("train", write_job(), "-y", "-o", "json").document["run"]
    watched = mlcd("watch", "last")
    assert watched.code == 0
    assert "search ended: " in watched.err
    assert f"More: mlcd show {run}" in watched.out


def test_stop_and_down_answer_in_the_servers_words(there: Mlcd, write_job: WriteJob) -> None:
    run = there("train", write_job(search=ALONE), "--decide-only", "-o", "json").document["run"]
    assert run in there("stop", run).out
    assert run in there("down", "last").out
    assert f"run '{run}' has no such log" in there("logs", run).complaint


WRONG = {
    "an unknown run": (("show", "nothing-9"), "unknown run 'nothing-9'"),
    "a bad option": (("train", "JOB", "--budget", "abc"), "Invalid value for '--budget'"),
    "a bad method": (("train", "JOB", "--method", "guess", "-y"), "unknown method 'guess'"),
    "a place that is not there": (("train", "JOB", "--on", "recorded:secret", "-y"), "secret"),
    "no such file": (("train", "nowhere.yaml"), "nowhere.yaml: no such file"),
    "no such model": (("serve", "nowhere.onnx"), "nowhere.onnx: no such file"),
    "a model is deleted where it is": (("models", "forget", "x"), "run it where the server keeps them"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_one_line_there_too(
    there: Mlcd, write_job: WriteJob, arguments: tuple[str, ...], words: str
) -> None:
    job = write_job(search=ALONE)
    assert words in there(*(str(job) if each == "JOB" else each for each in arguments)).complaint


def test_a_viewer_a_stranger_and_one_without_money_are_refused(
    service: Service, mlcd: Mlcd, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job("budget: $40", search=ALONE)
    submit = ("--server", service.url, "train", job, "-y")
    before = service.ledger.runs()
    for who, words in (("vic", "not allowed: "), ("poor", "$1.00")):
        monkeypatch.setenv("MLCD_TOKEN", service.tokens[who])
        complaint = mlcd(*submit).complaint
        assert words in complaint
        assert service.tokens[who] not in complaint
    monkeypatch.setenv("MLCD_TOKEN", "mlcd_" + "x" * 43)
    complaint = mlcd(*submit).complaint
    assert "the token is missing or not known there" in complaint
    assert "xxx" not in complaint
    monkeypatch.delenv("MLCD_TOKEN")
    assert "the token is missing or not known there" in mlcd(*submit).complaint
    assert service.ledger.runs() == before


def test_signing_in_keeps_the_token_and_signing_out_forgets_it(
    service: Service, mlcd: Mlcd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", _Typed("mlcd_" + "y" * 43))
    assert "not known there" in mlcd("login", service.url).complaint
    assert not (home / "servers.json").exists()
    monkeypatch.setattr("sys.stdin", _Typed(service.tokens["vic"] + "\n"))
    answer = mlcd("login", f"{service.url}/")
    assert answer.out == f"Signed in to {service.url} as vic, viewer.\n"
    monkeypatch.setenv("MLCD_SERVER", service.url)
    checked = mlcd("check")
    assert f"{service.url}: MLCD {VERSION}, as vic, viewer" in checked.out
    assert service.tokens["vic"] not in answer.out + answer.err + checked.out + checked.err
    monkeypatch.delenv("MLCD_SERVER")
    assert mlcd("login", service.url, "--forget").code == 0
    assert "no token is kept" in mlcd("login", service.url, "--forget").complaint
    assert "not known there" in mlcd("--server", service.url, "runs").complaint


class _Typed:
    """A stdin that is no terminal."""

    def __init__(self, line: str) -> None:
        self._line = line

    def readline(self) -> str:
        return self._line

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("command", HERE)
def test_a_command_about_this_machine_is_not_for_a_server(mlcd: Mlcd, command: str) -> None:
    complaint = mlcd("--server", "http://localhost:1", command).complaint
    assert complaint == f"mlcd: mlcd {command} {HERE[command]}: run it without --server"


def test_what_is_only_read_here_needs_no_server(mlcd: Mlcd, write_job: WriteJob) -> None:
    assert mlcd("--server", "http://localhost:1", "plan", write_job()).code == 0
    assert "cannot be reached" in mlcd("--server", "http://localhost:1", "runs").complaint
    assert "expected an address" in mlcd("--server", "localhost", "runs").complaint


def test_a_server_of_one_person_needs_no_token(
    mlcd: Mlcd, tmp_path: Path, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlcd.web.app import create_app
    from mlcd.web.feed import Feed
    from mlcd.web.settings import Settings
    from mlcd.web.state import State
    from mlcd.workers import Here

    ledger = Ledger(tmp_path / "ui" / "ledger.db")
    crew, audit = Here(ledger), Audit(ledger.database, lambda: datetime.now(UTC))
    settings = Settings("ui", tmp_path / "ui")
    with listening(create_app(State(ledger, ledger.database, crew, None, audit, settings, Feed(ledger)))) as url:
        monkeypatch.setenv("MLCD_SERVER", url)
        assert "No run yet" in mlcd("runs").out
        assert mlcd("train", write_job(search=ALONE), "-y").code == 0
        assert "for one person" in mlcd("check").out
    crew.close()
    assert ledger.account("demo-1").ended is not None
    ledger.close()


def _hears_ctrl_c() -> None:
    """As in a terminal: what a shell starts in the background would ignore it, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(service: Service, decided: str, tmp_path: Path) -> None:
    started = service.ledger.lines(decided)[0].entry
    run = service.ledger.begin("endless", VirtualClock(), started).run
    environment = {**os.environ, "MLCD_TOKEN": service.tokens["ada"], "MLCD_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "mlcd", "--server", service.url, "watch", run]
    with (
        service.ledger.hold(run),
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=_hears_ctrl_c) as it,
    ):
        assert it.stderr is not None
        first = it.stderr.readline()
        it.send_signal(signal.SIGINT)
        last = it.stderr.read()
    mlcd = f"mlcd --server {service.url}"
    assert first.startswith(f"{run}  simulated")
    assert (it.returncode, last) == (
        2,
        f"mlcd: left; run '{run}' goes on. Watch it again: {mlcd} watch {run}; stop it: {mlcd} stop {run}\n",
    )
    assert service.ledger.account(run).status == "searching"


@pytest.mark.parametrize(("typed", "words"), [("n", "Not run. Run it with: mlcd launch"), ("y", "Final run: ")])
def test_whoever_sits_at_a_terminal_is_asked_before_it_is_run(
    service: Service, write_job: WriteJob, home: Path, typed: str, words: str
) -> None:
    ours, its = os.openpty()
    environment = {**os.environ, "MLCD_TOKEN": service.tokens["ada"], "MLCD_HOME": str(home)}
    command = [sys.executable, "-m", "mlcd", "--server", service.url, "train", str(write_job(search=ALONE))]
    try:
        with subprocess.Popen(
            command, env=environment, stdin=its, stderr=its, stdout=subprocess.PIPE, text=True
        ) as running:
            seen = b""
            while b"Run it?" not in seen:
                seen += os.read(ours, 65_536)
            os.write(ours, f"{typed}\n".encode())
            assert running.stdout is not None
            out = running.stdout.read()
    finally:
        os.close(ours)
        os.close(its)
    assert running.returncode == 0
    assert words in out
