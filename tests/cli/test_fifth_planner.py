"""A planner in a package of its own (tests/fifth_planner) works wherever ours do; nothing of MLCD knows it by name."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import Service, a_team, one_person

from mlcd.core.home import open_ledger
from mlcd.core.ledger import Settled

pytestmark = pytest.mark.skipif(
    not entry_points(group="mlcd.planners", name="infer"), reason="pip install --no-deps -e tests/fifth_planner"
)

JOB = """
name: captions
run: python caption.py
mlcd:
  work: 50M
  checkpoints: true
  budget: $60
  search: {instances: ["c5.*"], nodes: 1..2}
  infer: {chunks: [8, 64]}
"""
KILLED = """
import os, signal, sys
from mlcd.core.home import open_ledger
from mlcd.core.planner import planner_named
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job
job = planner_named("infer").with_options(load_job(sys.argv[1]), {})
start(job, open_ledger(), lambda line: os.kill(os.getpid(), signal.SIGKILL) if line.seq == 5 else None).search()
"""
"""A search that is killed in the middle of its third probe."""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def test_its_command_searches_decides_and_runs(mlcd: Any, job: Path) -> None:
    ran = mlcd("infer", job, "-y")
    assert ran.code == 0
    assert "1 x c5.xlarge, chunks of 64" in ran.out
    assert "certified within $60.00" in ran.out
    assert "Least waiting: 27 %" in ran.out, "its own facts"
    assert "WAITING FOR DATA" in ran.out, "its own table"
    assert "the job ran to its end" in ran.err


def test_its_own_options_replace_what_its_block_says(mlcd: Any, job: Path) -> None:
    only = mlcd("infer", job, "--chunks", "16", "--decide-only", "-o", "json").document
    assert {probe["label"].rpartition(" ")[2] for probe in only["probes"]} == {"16"}
    assert "expected items in a chunk" in mlcd("infer", job, "--chunks", "many").complaint
    assert "--chunks" in mlcd("infer", "--help").out
    assert "infer" in mlcd("--help").out


@pytest.mark.parametrize(
    ("written", "instead", "complaint"),
    [
        ("chunks:", "chnks:", ":9:11: unknown key 'chnks': did you mean 'chunks'?"),
        ("[8, 64]", "[8, x]", ":9:11: chunks '[8, 'x']': expected items in a chunk, such as 8,32,128"),
        ("  infer:", "  infre:", ":9:3: unknown key 'infre': did you mean 'infer'?"),
    ],
)
def test_a_mistake_in_its_block_is_told_by_line(
    mlcd: Any, job: Path, written: str, instead: str, complaint: str
) -> None:
    job.write_text(JOB.replace(written, instead))
    refused = mlcd("infer", job)
    assert refused.code == 2
    assert refused.complaint == f"mlcd: {job}{complaint}"


def test_a_job_file_without_its_block_is_refused(mlcd: Any, job: Path) -> None:
    job.write_text(JOB.replace("  infer: {chunks: [8, 64]}\n", ""))
    assert "no `infer:` block" in mlcd("infer", job).complaint


def test_plan_names_the_first_probe_and_spends_nothing(mlcd: Any, job: Path) -> None:
    planned = mlcd("plan", job)
    assert planned.code == 0
    assert "First probe: 1 x c5.large, chunks of 64" in planned.out
    assert mlcd("plan", job, "-o", "json").document["configurations"] == 32
    assert mlcd("runs", "-o", "json").document["runs"] == []


def test_a_killed_run_resumes_and_pays_for_no_probe_twice(mlcd: Any, job: Path, home: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(job)], check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert mlcd("resume", "last", "-y").code == 0
    document = mlcd("show", "last", "-o", "json").document
    assert document["status"] == "finished"
    ledger = open_ledger()
    settled = [line.entry for line in ledger.lines("captions-1") if isinstance(line.entry, Settled)]
    assert len({each.launch.label for each in settled}) == len(settled)
    assert sum(each.measurement.usd for each in settled) == pytest.approx(document["spent_usd"])
    ledger.close()


def test_what_if_show_and_report_tell_its_run(mlcd: Any, job: Path, tmp_path: Path) -> None:
    mlcd("infer", job, "-y")
    assert "cheapest within $60.00" in mlcd("what-if", "last", "--goal", "cheapest").out
    assert "Waiting for data" in mlcd("show", "last").out
    document = mlcd("show", "last", "-o", "json").document
    assert document["planner"] == "infer"
    assert [figure["title"] for figure in document["figures"]] == ["Speed by chunk"]
    assert document["tables"][0]["rows"][0] == ["1 x c5.large, chunks of 64", 58.2, 27.3]
    assert mlcd("report", "last", "--to", tmp_path / "report.html").code == 0
    assert "Speed by chunk" in (tmp_path / "report.html").read_text()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with a_team(tmp_path_factory.mktemp("service")) as served:
        yield served


@pytest.mark.live
def test_a_service_takes_drives_and_shows_its_runs(
    service: Service, mlcd: Any, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLCD_TOKEN", service.tokens["ada"])
    here = mlcd("infer", job, "-y")
    away = mlcd("--server", service.url, "infer", job, "-y")
    assert (away.code, away.out) == (here.code, here.out)
    headers = {"Authorization": f"Bearer {service.tokens['ada']}"}
    with httpx.Client(base_url=f"{service.url}/api/v1", headers=headers) as client:
        (run,) = client.get("/runs", params={"kind": "infer"}).json()["runs"]
        page = client.get(f"/runs/{run['run']}").json()
        assert page["document"]["figures"][0]["series"], "what the page draws"
        assert "Speed by chunk" in client.get(f"/runs/{run['run']}/report").text
        asked = {"kind": "infer", "job": JOB, "options": {"chunks": "16"}, "launch": False}
        assert client.post("/checks", json=asked).json()["configurations"] == 16


@pytest.mark.live
def test_mlcd_ui_takes_its_runs_and_answers_other_limits(tmp_path: Path) -> None:
    with one_person(tmp_path / "ui") as served, httpx.Client(base_url=f"{served.url}/api/v1") as client:
        sent = {"kind": "infer", "job": JOB, "options": {}, "launch": True}
        answer = client.post("/runs", json=sent, headers={"X-MLCD": "1"})
        assert answer.status_code == 202, answer.text
        run = answer.json()["run"]
        with client.stream("GET", f"/runs/{run}/events", timeout=300) as events:
            kinds = (json.loads(line[5:]).get("kind") for line in events.iter_lines() if line.startswith("data:"))
            assert "ended" in kinds
        again = client.get(f"/runs/{run}/what-if", params={"goal": "cheapest"}).json()
        assert again["decision"]["certified"]
