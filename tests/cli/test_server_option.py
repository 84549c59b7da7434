"""`mlcd --server URL`: every command against the service itself, on a port of loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import ALONE, Service, a_team

from mlcd.cli.server import LOCAL_ONLY
from mlcd.core.clock import VirtualClock
from mlcd.core.exit_codes import ExitCode
from mlcd.core.ledger import Stopped
from mlcd.service.remote.ledger import RemoteLedger, watch
from mlcd.service.remote.requests import Submission, submit
from mlcd.service.remote.server import Server
from mlcd.service.workers.submissions import to_json

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service, with workers of its own."""
    with a_team(tmp_path_factory.mktemp("service")) as served:
        yield served


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


def test_elastic_runs_print_the_same_there(there: Mlcd, mlcd: Mlcd, tmp_path: Path) -> None:
    text = (EXAMPLES / "elastic-resnet50.yaml").read_text().replace("g5.xlarge}", "g5.xlarge, earlier: false}")
    job = tmp_path / "alone.yaml"
    job.write_text(text)
    arguments = ("scale", job, "--on", "simulated", "--workers", "1..2", "-y")
    same(mlcd(*arguments), there(*arguments))


def test_a_job_that_does_not_get_there_ends_the_same_there(there: Mlcd, mlcd: Mlcd, write_job: WriteJob) -> None:
    never = "{workers: 1..4, batch: 64..256, target: accuracy >= 0.9, epochs: 500}"
    more = f"batch: 128\ncheckpoints: true\nelastic: {never}\n"
    job = write_job(more, work="{dataset: 100k, epochs: 60}", search="{instances: [g4dn.xlarge], earlier: false}")
    away = there("scale", job, "-y")
    same(mlcd("scale", job, "-y"), away, 1)
    assert "accuracy >= 0.9 was not reached in 60 epochs" in away.err
    listed = there("runs", "-o", "json").document["runs"][-1]
    assert listed["status"] == "failed"


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
    run = submit(server, Submission("train", {"goal": "cheapest"}, text), launch=False)
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
    ("spot", "history"),
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
    assert f"The job was not run. Run it with: mlcd launch {run}" in resumed.out
    launched = there("launch", run)
    assert launched.code == 0, launched
    assert "Final run: " in launched.out
    watched = there("watch", run)
    assert watched.code == 0
    assert launched.err.strip().splitlines()[-1] in watched.err
    assert "Final run: " in watched.out
    assert f"run '{run}' is finished" in there("launch", run).complaint
    assert f"run '{run}' is finished; there is nothing to resume" in there("resume", run).complaint


@pytest.mark.parametrize("launch", [False, True], ids=["submitted to be decided", "submitted to be run"])
def test_a_run_that_was_stopped_goes_on_to_its_decision_and_then_to_its_end(
    there: Mlcd, service: Service, decided: str, launch: bool
) -> None:
    started = service.ledger.lines(decided)[0].entry
    run = service.ledger.submit("halted", to_json(started.job, launch), "ada")
    service.ledger.begin("halted", VirtualClock(), started, run=run).write(Stopped("the user stopped"))
    resumed = there("resume", run, "--decide-only")
    assert resumed.code == 0, resumed
    assert "search ended: " in resumed.err
    assert "Decision (simulated): " in resumed.out
    assert f"The job was not run. Run it with: mlcd launch {run}" in resumed.out
    finished = there("resume", run, "-y")
    assert finished.code == 0, finished
    assert "Decision (simulated): " in finished.out
    assert "Final run: " in finished.out


def test_new_limits_are_decided_under_and_run_without_asking(there: Mlcd, write_job: WriteJob) -> None:
    run = there("train", write_job("budget: $0.01", search=ALONE), "-o", "json").document["run"]
    raised = there("resume", run, "--budget", "900", "-y")
    assert raised.code == 0, raised
    assert "Decision (simulated): " in raised.out
    assert "Final run: " in raised.out


def test_a_run_of_this_machine_can_be_watched_too(mlcd: Mlcd, write_job: WriteJob) -> None:
    run = mlcd("train", write_job(), "-y", "-o", "json").document["run"]
    watched = mlcd("watch", "last")
    assert watched.code == 0
    assert "search ended: " in watched.err
    assert f"More: mlcd show {run}" in watched.out


def test_stop_and_down_answer_in_the_servers_words(there: Mlcd, write_job: WriteJob) -> None:
    run = there("train", write_job(search=ALONE), "--decide-only", "-o", "json").document["run"]
    stopped = there("stop", run)  # in time, or too late: the process that decided it may have ended by now
    assert run in (stopped.out or stopped.complaint)
    assert run in there("down", "last").out
    assert "only an admin can say that a machine is gone" in there("down", run, "--machine-gone").complaint
    assert f"run '{run}' has no such log" in there("logs", run).complaint


WRONG = {
    "an unknown run": (("show", "nothing-9"), "unknown run 'nothing-9'"),
    "no run's name": (("show", "../nothing"), "unknown run '../nothing'"),
    "no name at all": (("stop", ""), "unknown run ''"),
    "a bad option": (("train", "JOB", "--budget", "abc"), "Invalid value for '--budget'"),
    "a bad method": (("train", "JOB", "--method", "guess", "-y"), "unknown method 'guess'"),
    "a place that is not there": (("train", "JOB", "--on", "recorded:secret", "-y"), "secret"),
    "no such file": (("train", "nowhere.yaml"), "nowhere.yaml: no such file"),
    "no such model": (("serve", "nowhere.onnx"), "nowhere.onnx: no such file"),
    "an unknown model": (("models", "forget", "../x"), "unknown stored model '../x'"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_one_line_there_too(
    there: Mlcd, write_job: WriteJob, arguments: tuple[str, ...], words: str
) -> None:
    job = write_job(search=ALONE)
    assert words in there(*(str(job) if each == "JOB" else each for each in arguments)).complaint


def test_a_learned_model_is_forgotten_there_by_an_admin(
    there: Mlcd, mlcd: Mlcd, service: Service, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "batch: 128\ncheckpoints: true\nelastic: {workers: 1..2, batch: 64..128, target: accuracy >= 0.9}\n"
    job = write_job(more, work="{dataset: 100k, epochs: 60}", search="{instances: [g4dn.xlarge]}")
    assert there("scale", job, "-y").code == 0
    name = there("models", "-o", "json").document["models"][0]["name"]
    assert there("models", "show", name).code == 0
    assert "ada is a runner; this needs an admin" in there("models", "forget", name).complaint
    monkeypatch.setenv("MLCD_TOKEN", service.tokens["root"])
    forgotten = mlcd("--server", service.url, "models", "forget", name)
    assert (forgotten.code, forgotten.out) == (0, f"Deleted the model {name}.\n")
    assert f"unknown stored model '{name}'" in there("models", "show", name).complaint
    assert f"unknown stored model '{name}'" in mlcd("--server", service.url, "models", "forget", name).complaint


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
    assert "the token in MLCD_TOKEN is not valid there" in complaint
    assert complaint.endswith("put a new one there, or unset MLCD_TOKEN")
    assert "xxx" not in complaint
    monkeypatch.delenv("MLCD_TOKEN")
    assert "you are not signed in there" in mlcd(*submit).complaint
    assert service.ledger.runs() == before


@pytest.mark.parametrize("command", LOCAL_ONLY)
def test_a_command_about_this_machine_is_not_for_a_server(mlcd: Mlcd, command: str) -> None:
    complaint = mlcd("--server", "http://localhost:1", command).complaint
    assert complaint == f"mlcd: mlcd {command} {LOCAL_ONLY[command]}: run it without --server"


def test_a_server_that_is_not_there_is_told_by_every_command_that_asks_it(mlcd: Mlcd, write_job: WriteJob) -> None:
    for command in (("runs",), ("plan", write_job()), ("team", "list"), ("models", "forget", "x")):
        assert "cannot be reached" in mlcd("--server", "http://localhost:1", *command).complaint
        assert "expected an address" in mlcd("--server", "localhost", *command).complaint


def test_a_plan_is_made_here_and_the_server_says_what_it_would_run(
    there: Mlcd, mlcd: Mlcd, service: Service, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job("budget: $40", search=ALONE)
    here, away = mlcd("plan", job), there("plan", job)
    assert away.code == 0
    *plan, nothing = here.out.splitlines()
    assert away.out.splitlines() == [*plan, "On the server: simulated, 4 configurations of 2 types", nothing]
    told = there("plan", job, "-o", "json").document
    foreseen = told.pop("there")
    assert told == mlcd("plan", job, "-o", "json").document
    assert (foreseen["types"], foreseen["budget_usd"]) == (["c5.xlarge", "g4dn.xlarge"], 40.0)
    monkeypatch.setenv("MLCD_TOKEN", service.tokens["poor"])
    poor = mlcd("--server", service.url, "plan", job).out
    refused = "the server would refuse it: set --budget to at most $1.00, or ask an admin for more"
    assert f"4 configurations of 2 types; you have $1.00 left\n  {refused}" in poor
    replayed = there("plan", EXAMPLES / "pytorch-char-rnn" / "job.yaml", "--on", "recorded:char-rnn")
    assert replayed.code == 0, replayed
    assert re.search(r"^On the server: recorded:char-rnn, \d+ configurations of \d+ types$", replayed.out, re.MULTILINE)
    assert "unknown recording 'secret'" in there("plan", job, "--on", "recorded:secret").complaint


def test_ctrl_c_leaves_the_run_alone_and_says_how_to_come_back(service: Service, decided: str, tmp_path: Path) -> None:
    started = service.ledger.lines(decided)[0].entry
    run = service.ledger.begin("endless", VirtualClock(), started).run
    environment = {**os.environ, "MLCD_TOKEN": service.tokens["ada"], "MLCD_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "mlcd", "--server", service.url, "watch", run]
    with (
        service.ledger.hold(run),
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as it,
    ):
        assert it.stderr is not None
        first = it.stderr.readline()
        it.send_signal(signal.SIGINT)
        last = it.stderr.read()
    mlcd = f"mlcd --server {service.url}"
    assert first.startswith(f"{run}  simulated")
    how = f"Follow it again: {mlcd} attach {run}; stop it: {mlcd} stop {run}\n"
    assert last == f"mlcd: stopped following; run '{run}' continues. {how}"
    # Where Ctrl-C meets a module that is being imported, CPython ends itself by the signal, though it was caught.
    assert it.returncode in (ExitCode.INTERRUPTED, -signal.SIGINT)
    assert service.ledger.account(run).status == "searching"


@pytest.mark.parametrize(
    ("typed", "words"), [("n", "The job was not run. Run it with: mlcd launch"), ("y", "Final run: ")]
)
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
