"""The command line here and in a process of its own, a state folder, a made-up recording, and a PostgreSQL."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlcd_fixtures.examples  # noqa: F401  the profile is loaded before any test is
import pytest
from mlcd_fixtures.postgres import WANTED, PostgresServer, binaries

from mlcd.cli import main
from mlcd.core.exit_codes import ExitCode

# Compiled files are kept, whatever the shell says: each of the hundreds of processes would compile all of MLCD again,
# and each that collects the tests all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Simulated runs of workers step back behind everything else, also behind the tests that wait for them.
os.environ.setdefault("MLCD_STEP_BACK", "0")
# Before anything imports NumPy: its matrices are small here, and threads that spin for their share take half the CPU.
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
# Folders of tests are in memory where there is room: thousands of ledgers are written through to the disk otherwise.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# As in a terminal: what a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules are imported for seconds, and nothing of them is ever garbage: collecting it takes a tenth of all CPU.
gc.disable()

LONGEST = (
    "test_short_form.py",
    "test_in_browser.py",
    "test_live.py",
    "test_mcp.py",
    "test_local.py",
    "test_editor_page.py",
    "test_serve.py",
    "test_skypilot.py",
    "test_llm_examples.py",
    "test_mcp_attack.py",
    "test_market_place.py",
    "test_deploy_command.py",
    "test_docs.py",
    "test_local_executor.py",
    "test_sign_in_hostile.py",
    "test_operators_pages.py",
    "test_adaptive_training.py",
    "test_service_command.py",
    "test_grey_box.py",
    "test_organizing_page.py",
    "test_functions_promises.py",
    "test_serving_live_embedded.py",
    "test_old_formats.py",
    "test_log_page.py",
    "test_callbacks.py",
    "test_serve_language.py",
    "test_completion.py",
    "test_sign_in_page.py",
    "test_notification_mail.py",
    "test_live_in_browser.py",
    "test_server_option.py",
    "test_functions_live.py",
    "test_queue.py",
    "test_schema.py",
    "test_additions_page.py",
    "test_submission.py",
    "test_server_team.py",
    "test_switching.py",
    "test_detached.py",
)
"""Files that take 20 seconds and more, the longest first."""
FOR_THE_NIGHT = re.compile(r"^pytestmark = .*\bnight\b", re.MULTILINE)
STARTS_PROCESSES = {"mlcd_process", "running_postgres", "browser"}
"""Fixtures: who uses one is `live`. Files that start processes in another way say so by their `pytestmark`."""
REFUSALS = (ExitCode.REFUSED, ExitCode.YES_NEEDED, ExitCode.UNAVAILABLE, ExitCode.INTERRUPTED)
"""Exit codes of a command that says in one line why it did not do what it was asked for."""
COLUMNS = (
    "instance_type,nodes,usd_per_hour,samples_per_s,outcome,vcpus,memory_gb,"
    "accelerator,accelerators,tflops_per_accelerator,network_gbps"
)
WORK = 2_000_000
RATES: dict[str, tuple[float, str, dict[int, float | None]]] = {
    # Made up: small is cheap, gpu is fast, big does not fit on one node.
    "small": (0.40, "4,16,,,,5", {1: 20.0, 2: 38.0, 4: 70.0, 8: 110.0}),
    "gpu": (3.00, "8,61,V100,1,15.7,10", {1: 200.0, 2: 370.0, 4: 640.0, 8: 700.0}),
    "big": (9.00, "32,244,A100,4,19.5,25", {1: None, 2: 1500.0, 4: 2300.0}),
}
HETERBO = "{method: heterbo, nodes: 1..8}"
"""A search of many single probes, one after the other: what tests of state and interrupts need."""
SIMULATED_SEARCH = "{nodes: 1..4, instances: [c5.xlarge, g4dn.xlarge, p3.2xlarge]}"


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout, which must be JSON and nothing else."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of a command that was refused."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        assert len(lines) == 1, lines
        return self.last_words

    @property
    def last_words(self) -> str:
        """The one line of complaint that follows the progress of a command that was cut short."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        assert self.code in REFUSALS, self
        assert "Traceback" not in self.err
        assert [line for line in lines if line.startswith("mlcd: ")] == lines[-1:]
        return lines[-1]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """By day, do not even import a file that is for the night as a whole: frameworks take seconds to load."""
    if "not night" not in config.option.markexpr or not collection_path.match("test_*.py"):
        return None
    return bool(FOR_THE_NIGHT.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is `live`, and let the longest files come first: what begins last should not take long.

    Files are handed out in this order, as a whole (`--dist loadfile`), so that what their tests share is set up once.
    """
    for item in items:
        if isinstance(item, pytest.Function) and STARTS_PROCESSES & set(item.fixturenames):
            item.add_marker("live")
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_collection_finish() -> None:
    """What is there now stays: the garbage collector need not look at it after each test."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


Mlcd = Callable[..., Answer]
WriteJob = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own, and a working directory beside it."""
    folder = tmp_path / "home"
    monkeypatch.setenv("MLCD_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def mlcd(home: Path, capsys: pytest.CaptureFixture[str]) -> Mlcd:
    """Runs a command line in this process."""

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Answer(end.value.code, out, err)

    return run


@pytest.fixture
def mlcd_process(home: Path) -> Mlcd:
    """Runs a command line in a process of its own, as a shell would."""

    def run(*arguments: object) -> Answer:
        command = [sys.executable, "-m", "mlcd", *(str(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for all tests of this process; use `postgres_server` or `postgres_url`."""
    if binaries() is None:
        pytest.skip(WANTED)
    pytest.importorskip("psycopg", reason="pip install 'mlcd[service]'")
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def postgres_server(running_postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server itself, to be stopped, killed and started again; the next test finds it running."""
    yield running_postgres
    running_postgres.start()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of an empty database of its own."""
    return postgres_server.new_database()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording of three types, eleven configurations, one of them out of memory."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    about = f"name: tiny\nwork_samples: {WORK}\nprobe_base_s: 300\nprobe_extra_s_per_3_nodes: 30\nsource: made up\n"
    (folder / "recording.yaml").write_text(about)
    rows = [COLUMNS]
    for name, (price, facts, rates) in RATES.items():
        for nodes, rate in rates.items():
            shown = f"{rate},ok" if rate is not None else ",out_of_memory"
            rows.append(f"{name},{nodes},{price},{shown},{facts}")
    (folder / "points.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def write_job(tmp_path: Path) -> WriteJob:
    """Writes a job file: `extra` is more of the `mlcd:` block, `task` more of the task."""

    def write(extra: str = "", *, task: str = "", work: str = "1M", search: str = SIMULATED_SEARCH) -> Path:
        path = tmp_path / "job.yaml"
        hints = "  parameters: 25M\n  flops_per_sample: 12G\n"
        block = f"mlcd:\n  work: {work}\n{hints}  search: {search}\n"
        more = "".join(f"  {line}\n" for line in extra.splitlines())
        path.write_text(f"name: demo\nrun: python train.py\n{task}{block}{more}")
        return path

    return write


@pytest.fixture
def recorded_job(write_job: WriteJob, recording: Path) -> WriteJob:
    """Writes a job file that runs on the recording."""

    def write(extra: str = "", *, search: str = HETERBO) -> Path:
        return write_job(f"on: recorded:{recording.name}\n{extra}", work=str(WORK), search=search)

    return write
