"""Every command, on the simulated cloud and on a recording, for a person and for a program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlcd.catalog import load_rows
from mlcd.catalog.files import write_rows
from mlcd.cli import COMMANDS
from mlcd.core.units import format_usd
from mlcd.core.version import VERSION

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

LIMITS = {
    "fastest, no limit": "",
    "cheapest, no limit": "goal: cheapest",
    "cheapest by a deadline": "goal: cheapest\ndeadline: 3h",
    "fastest within a budget": "goal: fastest\nbudget: $40",
    "both limits": "goal: cheapest\nbudget: $40\ndeadline: 5h",
}


@pytest.fixture(params=["simulated", "recorded"])
def job(request: pytest.FixtureRequest, write_job: WriteJob, recorded_job: WriteJob) -> WriteJob:
    """Writes a job for either cloud."""
    return write_job if request.param == "simulated" else recorded_job


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
def test_train_decides_and_runs_within_its_limits(mlcd: Mlcd, job: WriteJob, limits: str) -> None:
    answer = mlcd("train", job(limits), "-y", "-o", "json")
    run = answer.document
    assert answer.code == 0
    assert run["status"] == "finished"
    assert run["decision"]["certified"]
    assert run["final_run"]["outcome"] == "ok"
    assert run["spent_usd"] == pytest.approx(run["probing_usd"] + run["final_run"]["usd"])
    goal = run["goal"]
    assert goal["budget_usd"] is None or run["spent_usd"] <= goal["budget_usd"]
    assert goal["deadline_s"] is None or run["elapsed_s"] <= goal["deadline_s"]
    assert "samples/s" in answer.err
    assert "search ended: " in answer.err


def test_options_stand_in_for_what_the_file_says(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    path = recorded_job("goal: cheapest\nbudget: $1")
    options = ["--goal", "fastest", "--budget", "none", "--deadline", "1d 4h", "--nodes", "1..2", "--instances", "s*"]
    run = mlcd("train", path, *options, "--seed", "3", "--decide-only", "-o", "json").document
    assert run["goal"] == {"objective": "fastest", "budget_usd": None, "deadline_s": 28 * 3_600, "confidence": 0.99}
    assert {(p["instance_type"], p["nodes"]) for p in run["probes"]} <= {("small", 1), ("small", 2)}
    assert run["configurations"] == 2
    assert run["seed"] == 3


@pytest.mark.parametrize(
    "limits, binding, field",
    [("budget: $6", "the budget", "budget_usd"), ("deadline: 30m", "the deadline", "deadline_s")],
)
def test_an_impossible_job_names_the_limit_and_what_would_do(
    mlcd: Mlcd, recorded_job: WriteJob, limits: str, binding: str, field: str
) -> None:
    answer = mlcd("train", recorded_job(limits), "-o", "json")
    assert answer.code == 3
    decision = answer.document["decision"]
    assert answer.document["status"] == "infeasible"
    assert answer.document["final_run"] is None
    assert decision["configuration"] is None
    assert decision["binding"] == binding
    needed = decision["relaxations"][0][field]
    assert needed > answer.document["goal"][field]
    shown = mlcd("train", recorded_job(limits))
    assert shown.code == 3
    assert f"cannot be certified within {binding}; it needs " in shown.out


def test_what_would_do_does(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    refused = mlcd("train", recorded_job("budget: $6"), "-o", "json").document
    needed = refused["decision"]["relaxations"][0]["budget_usd"]
    again = mlcd("what-if", "last", "--budget", f"{needed + 0.01:.2f}", "-o", "json").document
    assert again["decision"]["certified"]


@pytest.mark.parametrize("command", ["train", "scale"])
def test_a_what_if_of_a_run_without_probes_blames_no_limit_of_that_run(
    mlcd: Mlcd, write_job: WriteJob, command: str
) -> None:
    elastic = "batch: 128\ncheckpoints: true\nscale: {workers: 1..4, batch: 64..256, target: accuracy >= 0.9}"
    job = write_job(elastic, work="{dataset: 100k, epochs: 60}") if command == "scale" else write_job()
    assert mlcd(command, job, "--budget", "0.01", "-y").code == 3
    told = " ".join(mlcd("what-if", "last", "--budget", "5000").out.split())
    assert "cannot be certified: nothing was measured in this run; only a new search can tell" in told
    assert "max_probe" not in told
    assert "the cheapest probe alone can cost" in mlcd("what-if", "last", "--budget", "0.02").out


def test_a_decision_is_shown_with_its_evidence_and_launched_later(mlcd: Mlcd, job: WriteJob) -> None:
    decided = mlcd("train", job("budget: $40"), "--decide-only")
    assert decided.code == 0
    assert "CHOSEN" in decided.out
    assert "✔" in decided.out
    assert "Reserve: spent $" in decided.out
    assert "certified within $40.00 with 99 % confidence" in decided.out
    assert "Run it with: mlcd launch demo-1" in decided.out
    launched = mlcd("launch", "demo-1")
    assert launched.code == 0
    assert "Final run: the job ran to its end." in launched.out
    assert "forecast " in launched.out
    assert mlcd("show", "last", "-o", "json").document["status"] == "finished"


def test_what_is_simulated_or_recorded_says_so(mlcd: Mlcd, write_job: WriteJob, recorded_job: WriteJob) -> None:
    for write, word in ((write_job, "simulated"), (recorded_job, "recorded")):
        path = write()
        assert f"Space ({word})" in mlcd("plan", path).out
        answer = mlcd("train", path, "--decide-only")
        assert f"Decision ({word})" in answer.out
        assert word in answer.err.splitlines()[0]
        for command in (["runs"], ["show", "last"], ["export", "last", "--to", "skypilot"]):
            assert word in mlcd(*command).out
        mlcd("report", "last", "--to", "page.html")
        assert word in Path("page.html").read_text().lower()


def test_plan_spends_nothing(mlcd: Mlcd, job: WriteJob) -> None:
    shown = mlcd("plan", job("budget: $40"))
    assert shown.code == 0
    assert "Nothing was spent." in shown.out
    document = mlcd("plan", job("budget: $40"), "-o", "json").document
    assert document["types"] == 3
    assert len(document["smallest"]) == 3
    assert document["chance"] in ("likely", "doubtful", "unlikely", "unknown")
    assert mlcd("runs", "-o", "json").document == {"runs": []}


def test_what_if_decides_again_and_leaves_the_run_as_it_was(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    mlcd("train", recorded_job("budget: $40"), "-y")
    before = mlcd("ledger", "last", "-o", "json").document
    document = mlcd("what-if", "last", "--goal", "cheapest", "--budget", "none", "-o", "json").document
    assert document["goal"] == {"objective": "cheapest", "budget_usd": None, "deadline_s": None, "confidence": 0.99}
    probes = [p for p in mlcd("show", "last", "-o", "json").document["probes"] if p["outcome"] == "ok"]
    cheapest = min(probes, key=lambda probe: probe["finish"]["usd"])
    chosen = document["decision"]["configuration"]
    assert (chosen["instance_type"], chosen["nodes"]) == (cheapest["instance_type"], cheapest["nodes"])
    assert "nothing was spent" in mlcd("what-if", "last", "--budget", "50").out
    assert "cannot be certified" in mlcd("what-if", "last", "--budget", "1").out
    assert mlcd("ledger", "last", "-o", "json").document == before


def test_runs_show_and_ledger_tell_the_same_story(mlcd: Mlcd, job: WriteJob) -> None:
    run = mlcd("train", job("budget: $40"), "-y", "-o", "json").document
    assert mlcd("show", "demo-1", "-o", "json").document == run
    (brief,) = mlcd("runs", "-o", "json").document["runs"]
    long = ("probes", "refused", "facts", "tables", "figures")
    unlabelled = {"project": None, "tags": [], "note": "", "archived": False}
    assert brief == {key: value for key, value in run.items() if key not in long} | unlabelled
    entries = mlcd("ledger", "last", "-o", "json").document["entries"]
    paid = sum(entry["measurement"]["usd"] for entry in entries if entry["kind"] == "settled")
    assert paid == pytest.approx(run["spent_usd"])
    for command in (["runs"], ["show", "last"], ["ledger", "last"]):
        answer = mlcd(*command)
        assert answer.code == 0
        assert answer.err == ""
    assert mlcd("runs").out.splitlines()[1].startswith("demo-1")


def test_simulated_dollars_are_never_added_to_others(mlcd: Mlcd, write_job: WriteJob, recorded_job: WriteJob) -> None:
    spent = {}
    for write in (write_job, recorded_job):
        run = mlcd("train", write("budget: $40"), "-y", "-o", "json").document
        spent[run["provenance"]] = format_usd(run["spent_usd"])
    footer = [line.split() for line in mlcd("runs").out.splitlines() if "total, " in line]
    assert footer == [["total,", place, spent[place]] for place in ("recorded", "simulated")]


def test_the_report_is_one_page_that_needs_no_network(mlcd: Mlcd, job: WriteJob) -> None:
    mlcd("train", job("budget: $40"), "-y")
    document = mlcd("report", "last", "-o", "json").document
    page = Path("demo-1.html")
    assert document == {"run": "demo-1", "path": "demo-1.html", "bytes": page.stat().st_size}
    assert page.stat().st_size < 1_000_000
    assert "Wrote other.html" in mlcd("report", "last", "--to", "other.html").out
    text = page.read_text()
    assert text.lower().startswith("<!doctype html>")
    for fetched in ('src="http', "src='http", 'href="http', "@import", "url(http"):
        assert fetched not in text


def test_export_is_the_users_task_on_the_chosen_resources(mlcd: Mlcd, write_job: WriteJob) -> None:
    path = write_job(task="num_nodes: 9\nenvs: {A: b}\nresources: {infra: aws, disk_size: 100, cpus: 4+}\n")
    chosen = mlcd("train", path, "--decide-only", "-o", "json").document["decision"]["configuration"]
    answer = mlcd("export", "last", "--to", "skypilot")
    task = yaml.safe_load(answer.out)
    assert task["num_nodes"] == chosen["nodes"]
    assert task["resources"] == {"infra": "aws/us-east-1", "instance_type": chosen["instance_type"], "disk_size": 100}
    assert (task["name"], task["run"], task["envs"]) == ("demo", "python train.py", {"A": "b"})
    assert "mlcd" not in task
    assert mlcd("export", "last", "--to", "skypilot", "-o", "json").document == task
    assert "sky launch task.yaml" in mlcd("export", "last", "--to", "skypilot", "--file", "task.yaml").out
    assert Path("task.yaml").read_text() == answer.out
    assert mlcd("export", "last", "--to", "skypilot", "--file", "two.yaml", "-o", "json").document == task
    assert Path("two.yaml").read_text() == answer.out


def test_spot_offers_are_shown_by_zone_where_prices_of_zones_are_known(mlcd: Mlcd, home: Path) -> None:
    known = {"us-east-1a": 0.06, "us-east-1b": 0.05}
    rows = [row for row in load_rows("aws") if row.instance_type in ("c5.xlarge", "c5.2xlarge")]
    write_rows(
        home / "catalog" / "aws.csv",
        [replace(row, spot_usd_by_zone=known if row.instance_type == "c5.xlarge" else {}) for row in rows],
    )
    listed = mlcd("offers", "--spot", "--cloud", "aws").out.splitlines()
    assert [line.split()[:2] for line in listed if "c5." in line] == [
        ["aws/us-east-1/us-east-1b", "c5.xlarge"],
        ["aws/us-east-1/us-east-1a", "c5.xlarge"],
        ["aws/us-east-1", "c5.2xlarge"],
    ]
    assert [line.split()[-2] for line in listed if "c5.xlarge" in line] == ["0.050", "0.060"]
    assert mlcd("offers", "--cloud", "aws").out.count("c5.xlarge") == 1
    (offer, _) = mlcd("offers", "--spot", "--cloud", "aws", "-o", "json").document["offers"]
    assert offer["spot_usd_by_zone"] == known


def test_offers_are_filtered_and_sorted(mlcd: Mlcd) -> None:
    offers = mlcd("offers", "--gpu", "A100", "--max-price", "5", "-o", "json").document["offers"]
    assert offers
    assert all(offer["accelerator"].startswith("A100") and offer["usd_per_hour"] <= 5 for offer in offers)
    assert [offer["usd_per_hour"] for offer in offers] == sorted(offer["usd_per_hour"] for offer in offers)
    assert f"{len(offers)} offers" in mlcd("offers", "--gpu", "A100", "--max-price", "5").out
    assert "No offer passes these filters." in mlcd("offers", "--gpu", "H100", "--max-price", "0.01").out


def test_check_tells_what_works_here(mlcd: Mlcd, home: Path) -> None:
    checks = {check["what"]: check for check in mlcd("check", "-o", "json").document["checks"]}
    assert {"python", "mlcd", "ledger", "catalog", "backend simulated", "backend recorded:DIR"} <= set(checks)
    assert str(home) in checks["ledger"]["found"]
    assert mlcd("check").code == 0
    (home / "ledger.db").write_text("dear diary")
    assert mlcd("check").code == 1


def test_the_version_and_the_help_are_there(mlcd: Mlcd) -> None:
    assert mlcd("--version").out.strip() == f"mlcd, version {VERSION}"
    page = mlcd("-h").out
    for command in COMMANDS:
        assert f"  {command} " in page
        assert mlcd(command, "--help").out.startswith(f"Usage: mlcd {command} ")
    bare = mlcd()
    assert bare.code == 2
    assert "Usage: mlcd " in bare.err


def test_a_terminal_without_unicode_gets_question_marks_and_no_trace(
    mlcd: Mlcd, recorded_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlcd("train", recorded_job(), "--decide-only")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = subprocess.run([sys.executable, "-m", "mlcd", "show", "last"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Decision (recorded)" in done.stdout


def test_a_look_at_the_runs_waits_for_no_method(home: Path) -> None:
    script = (
        "import sys, mlcd.cli\n"
        "try: mlcd.cli.main(['runs'])\n"
        "except SystemExit: pass\n"
        "heavy = {'scipy', 'sklearn', 'alembic', 'mlcd.planners.train.net_value', 'mlcd.service.web'}\n"
        "sys.exit(str(heavy & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr.strip() == ""


def test_check_names_the_ledger_that_is_used(mlcd: Mlcd, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"{home / 'ledger.db'}, 0 runs" in mlcd("check").out
    monkeypatch.setenv("MLCD_DATABASE_URL", f"sqlite:///{home / 'elsewhere.db'}")
    assert f"{home / 'elsewhere.db'}, 0 runs" in mlcd("check").out


def test_a_budget_so_small_that_hardly_anything_is_tried_is_told_as_such(mlcd: Mlcd) -> None:
    example = Path(__file__).parents[2] / "examples" / "resnet50.yaml"
    answer = mlcd("train", example, "--budget", "0.5", "-y", "-o", "json")
    assert answer.code == 3
    binding = answer.document["decision"]["binding"]
    assert binding == "no probe could run the job; under this limit, 143 of 144 were not tried"


def test_a_variable_of_the_shell_reaches_a_job_by_name_and_is_stored_nowhere(
    mlcd: Mlcd, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job("budget: $100")
    lacking = mlcd("train", job, "--on", "local", "--instances", "*", "--env", "GREETING")
    assert "GREETING is not set" in lacking.complaint
    assert "expected NAME or NAME=VALUE" in mlcd("train", job, "--env", "=x").complaint
    monkeypatch.setenv("GREETING", "hello-from-the-shell")
    mlcd("train", job, "--env", "GREETING", "--env", "EPOCHS=3", "--decide-only")
    stored = mlcd("ledger", "last", "-o", "json").out
    assert '"EPOCHS": "3"' in stored
    assert '"GREETING": null' in stored
    assert "hello-from-the-shell" not in stored
