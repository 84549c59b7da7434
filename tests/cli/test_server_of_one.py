"""`mlcd --server URL` against `mlcd ui`, the server of one person: no token, real machines, and what jobs write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import ALONE, Service, one_person

from mlcd.core.clock import VirtualClock
from mlcd.core.ledger import Stopped
from mlcd.service.workers.submissions import to_json

pytestmark = pytest.mark.live

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that all tests here share."""
    with one_person(tmp_path_factory.mktemp("one")) as served:
        yield served


@pytest.fixture
def there(service: Service, mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> Mlcd:
    """Runs a command line against it; jobs are at home in the folder of the test."""
    assert service.ledger.path is not None
    monkeypatch.setenv("MLCD_SERVER", service.url)
    monkeypatch.setenv("MLCD_HOME", str(service.ledger.path.parent))  # of its workers, children of this process
    return mlcd


def test_one_person_needs_no_token(there: Mlcd, service: Service, write_job: WriteJob) -> None:
    assert "No runs yet" in there("runs").out
    assert there("train", write_job(search=ALONE), "-y").code == 0
    assert "for one user" in there("check").out
    assert service.ledger.account("demo-1").ended is not None


def test_what_was_submitted_to_be_run_stops_at_its_decision_where_that_is_asked_now(
    there: Mlcd, service: Service, write_job: WriteJob
) -> None:
    first = there("train", write_job(search=ALONE), "--decide-only", "-o", "json").document["run"]
    started = service.ledger.lines(first)[0].entry
    run = service.ledger.submit("halted", to_json(started.job, True))
    service.ledger.begin("halted", VirtualClock(), started, run=run).write(Stopped("the user stopped"))
    resumed = there("resume", run, "--decide-only")
    assert resumed.code == 0, resumed
    assert "Decision (simulated): " in resumed.out
    assert f"The job was not run. Run it with: mlcd launch {run}" in resumed.out
    assert service.ledger.account(run).status == "decided"
    assert "Final run: " in there("resume", run, "-y").out


def test_a_job_that_fails_tells_why_and_its_log_is_read_from_there(
    there: Mlcd, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print('loading data', flush=True)\nraise RuntimeError('shape mismatch')\n")
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: broken\nrun: python3 train.py\n"
        "mlcd: {work: 4000, on: local, budget: $1, search: {nodes: 1..1, instances: [small], earlier: false}}\n"
    )
    ended = there("train", job, "-y")
    assert ended.code == 3, ended
    assert "the job raised RuntimeError: shape mismatch" in ended.out
    assert "       | loading data" in ended.err
    for follow in ((), ("-f",), ("--launch", 1)):
        log = there("logs", "broken-1", *follow)
        assert log.code == 0, log
        assert log.out.startswith("loading data\nTraceback ")
        assert log.out.endswith("RuntimeError: shape mismatch\n")
    missing = {
        ("--process", 1): "this launch of run 'broken-1' has no rank 1; it has: 0",
        ("--launch", 9): "run 'broken-1' has no such log",
    }
    for options, words in missing.items():
        assert words in there("logs", "broken-1", *options).complaint
