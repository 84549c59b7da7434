"""Machines that cost real money are never rented unasked; what `mlcd plan` names first is what is probed first."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mlcd.core.errors import MlcdError
from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Started
from mlcd.core.place import place_forms
from mlcd.core.runs.real_money import costs_real_money
from mlcd.core.runs.run import first_probes, start
from mlcd.core.strategy import Finish
from mlcd.core.units import format_usd
from mlcd.planners.form.jobs import job_from_text

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

SMALLEST = "name: digits\nrun: torchrun train.py\nmlcd:\n  work: 10M\n"


class Terminal(io.StringIO):
    """Somebody who types this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def job(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The smallest job of the docs: no limit, no hint. SkyPilot is there, and is never asked anything."""
    monkeypatch.setitem(sys.modules, "sky", ModuleType("sky"))
    path = Path("job.yaml")
    path.write_text(SMALLEST)
    return path


def test_only_places_that_send_a_bill_rent() -> None:
    assert {on for on in place_forms() if costs_real_money(on)} == {"skypilot", "skypilot:CLOUD"}
    assert costs_real_money("functions:aws_lambda")
    assert not any(
        map(costs_real_money, ("functions:simulated", "functions:localhost", "recorded:skypilot", "local:aws"))
    )


def test_one_probe_is_never_said_to_cost_more_than_all_together(mlcd: Mlcd, job: Path) -> None:
    job.write_text(f"{SMALLEST}  egress: 20GB\n")
    refused = mlcd("train", job, "--on", "skypilot:aws", "--budget", "1").complaint
    assert "up to $1.00, the budget, for probes and the final run together." in refused


@pytest.mark.parametrize("command", [("train",), ("train", "--decide-only", "-o", "json"), ("record", "--out", "mine")])
def test_without_a_terminal_nothing_is_rented_unasked(mlcd: Mlcd, job: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    refused = mlcd(name, job, *options, "--on", "skypilot:aws", "--budget", "20").complaint
    assert "First probe: " in refused
    assert "up to $20.00, the budget" in refused
    assert "pass -y" in refused
    assert mlcd("runs", "-o", "json").document == {"runs": []}


def test_a_model_is_not_served_on_rented_machines_unasked(mlcd: Mlcd, job: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="pip install mlcd[serve]")
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    from mlcd_bench.learn.zoo import recurrent

    onnx.save(recurrent(width=8, sequence=4), str(tmp_path / "lstm.onnx"))
    (tmp_path / "types.yaml").write_text("knobs: {instance: [m5.large, c5.large], batch: [1, 4]}\n")
    serve = ("serve", tmp_path / "lstm.onnx", "--knobs", tmp_path / "types.yaml", "--budget", "2")
    refused = mlcd(*serve, "--on", "skypilot:aws").complaint
    assert "First probe: instance " in refused
    assert "up to $2.00, the budget" in refused
    assert "pass -y" in refused
    assert "this knob is for rented machines: add --on skypilot:CLOUD" in mlcd(*serve).complaint
    unknown = ("serve", tmp_path / "lstm.onnx", "--on", "skypilot:aws")
    assert "name the instance types to try: --knobs FILE" in mlcd(*unknown).complaint
    assert mlcd("runs", "-o", "json").document == {"runs": []}


def test_a_search_without_a_limit_says_so_and_what_it_could_cost(mlcd: Mlcd, job: Path) -> None:
    refused = mlcd("train", job, "--on", "skypilot:aws").complaint
    assert "no budget and no deadline: nothing bounds the total; on one probe up to $" in refused
    assert "Probing each of " in refused
    assert (
        "no budget: nothing bounds the total"
        in mlcd("train", job, "--on", "skypilot:aws", "--deadline", "6h").complaint
    )


def test_no_probe_of_the_smallest_job_costs_more_than_its_limit(job: Path) -> None:
    """It would have opened with 36 x p5en.48xlarge, at $1,200."""
    seen: list[Started] = []
    with closing(open_ledger()) as ledger:
        start(job_from_text("train", SMALLEST, {"on": "skypilot:aws"}), ledger, agree=seen.append)
    probes = first_probes(seen[0])
    assert not isinstance(probes, Finish)
    for probe in probes:
        assert seen[0].space.worst_probe(probe.configuration)[1] <= 20


class ControlC(Terminal):
    """A terminal at which Ctrl-C is pressed instead of an answer."""

    def readline(self, size: int | None = -1) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize("answers", [Terminal("n\n"), ControlC()])
def test_at_a_terminal_it_is_asked_for_and_no_leaves_nothing(
    mlcd: Mlcd, job: Path, monkeypatch: pytest.MonkeyPatch, answers: Terminal
) -> None:
    monkeypatch.setattr(sys, "stdin", answers)
    monkeypatch.setattr("mlcd.cli.messages.can_ask", lambda: True)
    answer = mlcd("train", job, "--on", "skypilot:aws", "--budget", "20")
    assert answer.code == ExitCode.YES_NEEDED
    assert "Proceed? [y/N]" in answer.err
    assert "cancelled; nothing was ordered" in answer.err
    assert mlcd("runs", "-o", "json").document == {"runs": []}


def test_it_is_told_whether_traffic_out_of_the_region_is_in_the_limit(mlcd: Mlcd, job: Path) -> None:
    limits = ("--on", "skypilot:aws", "--budget", "50", "--instances", "m5.large", "--nodes", "1")
    unsaid = "Not counted: traffic out of a region, unless the job file says how much (egress)."
    assert unsaid in mlcd("train", job, *limits).complaint
    assert unsaid in " ".join(mlcd("plan", job, *limits).out.split())
    (before,) = mlcd("plan", job, *limits, "-o", "json").document["first_probes"]
    job.write_text(f"{SMALLEST}  egress: 20GB\n  search: {{max_probe: none}}\n")
    said = "Counted: 20 GB of traffic out of the region for each launch (egress)."
    assert said in mlcd("train", job, *limits).complaint
    assert said in " ".join(mlcd("plan", job, *limits).out.split())
    (after,) = mlcd("plan", job, *limits, "-o", "json").document["first_probes"]
    assert after["worst_usd"] == pytest.approx(before["worst_usd"] + 20 * 0.09)
    assert "egress" not in mlcd("plan", job).out, "nobody bills it on a simulated cloud"


@pytest.mark.parametrize("limits", [("--budget", "none"), ("--budget", "900"), ("--deadline", "90h")])
@pytest.mark.parametrize("options", [(), ("--decide-only",), ("--detach",)])
def test_new_limits_of_a_run_that_rents_are_asked_for(
    mlcd: Mlcd, job: Path, limits: tuple[str, ...], options: tuple[str, ...]
) -> None:
    with closing(open_ledger()) as ledger:
        start(job_from_text("train", SMALLEST, {"on": "skypilot:aws", "budget": "20"}), ledger)
        refused = mlcd("resume", "last", *limits, *options).complaint
        assert "It rents on skypilot:aws for real money" in refused
        assert ("nothing bounds the total" in refused) == ("none" in limits)
        assert "pass -y" in refused
        assert len(ledger.lines("last")) == 1, "nothing was written"


def test_yes_and_minus_y_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mlcd.cli.messages import confirm

    confirm("It rents.", yes=True)
    assert "It rents." in capsys.readouterr().err  # told, and not asked
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr("mlcd.cli.messages.can_ask", lambda: True)
    confirm("It rents.", yes=False)
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    with pytest.raises(MlcdError, match="cancelled"):
        confirm("It rents.", yes=False)


@pytest.mark.parametrize("limits", ["", "budget: $40", "goal: cheapest\ndeadline: 5h", "budget: $3"])
@pytest.mark.parametrize(
    "options",
    [(), ("--method", "heterbo"), ("--method", "random", "--seed", "3"), ("--max-hourly", "4"), ("--max-probe", "0.2")],
)
def test_plan_names_the_first_probes_of_train_with_their_price(
    mlcd: Mlcd, recorded_job: WriteJob, limits: str, options: tuple[str, ...]
) -> None:
    path = recorded_job(limits)
    planned = mlcd("plan", path, *options, "-o", "json").document
    shown = mlcd("plan", path, *options).out
    mlcd("train", path, *options, "--decide-only")
    entries = mlcd("ledger", "last", "-o", "json").document["entries"]
    reserved = [entry for entry in entries if entry["kind"] == "reserved"]
    begun = [entry for entry in reserved if entry["launch"]["round"] == reserved[0]["launch"]["round"]]
    assert [probe["worst_usd"] for probe in planned["first_probes"]] == pytest.approx([e["worst_usd"] for e in begun])
    assert [probe["because"] for probe in planned["first_probes"]] == [entry["because"] for entry in begun]
    for probe in planned["first_probes"]:
        assert f"First probe: {probe['configuration']}, at most {format_usd(probe['worst_usd'])}" in shown
    if not begun:
        assert "Nothing would be probed: " in shown
