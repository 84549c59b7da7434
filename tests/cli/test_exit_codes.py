"""Every command ends with the codes that docs/reference/exit-codes.md says, and with no other."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mlcd_fixtures.recorded_services import write_device

from mlcd.cli import COMMANDS
from mlcd.cli.check import ABOUT, Check
from mlcd.core.clock import VirtualClock
from mlcd.core.errors import MlcdError
from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Ended
from mlcd_bench.cli.bench import CRASHED

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
COLUMNS = (ExitCode.UNFINISHED, ExitCode.INFEASIBLE, ExitCode.YES_NEEDED)
ROWS = re.findall(r"(?m)^\| `(\w+)` \| (yes)? ?\| (yes)? ?\| (yes)? ?\|$", PAGE.read_text(encoding="utf-8"))
DOCUMENTED = {(row[0], code) for row in ROWS for cell, code in zip(row[1:], COLUMNS, strict=True) if cell}


def test_the_page_names_commands_that_there_are() -> None:
    assert {name for name, _ in DOCUMENTED} <= set(COMMANDS)
    assert {name for name, _ in DOCUMENTED} == {row[0] for row in ROWS}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_with_0_or_is_refused_with_2(mlcd: Mlcd, command: str) -> None:
    assert mlcd(command, "--help").code == ExitCode.DONE
    assert mlcd(command, "--no-such-option").code == ExitCode.REFUSED


def test_every_error_has_a_code_of_the_table() -> None:
    def all_of(kind: type[MlcdError]) -> list[type[MlcdError]]:
        return [kind, *(each for child in kind.__subclasses__() for each in all_of(child))]

    assert all(isinstance(kind.exit_code, ExitCode) for kind in all_of(MlcdError))


HERE, TUNE, SCALE, MONEY = (f"tests/cli/test_{name}.py" for name in ("exit_codes", "tune", "scale", "real_money"))
SHOWN = {
    **dict.fromkeys(
        [(name, 1) for name in ("train", "tune", "attach", "watch")], (HERE, "a_job_that_did_not_finish_is_1")
    ),
    **dict.fromkeys([(name, 1) for name in ("scale", "launch", "resume")], (HERE, "a_target_that_is_not_reached_is_1")),
    **dict.fromkeys([(name, 3) for name in ("train", "attach", "watch", "resume")], (HERE, "no_answer_is_3")),
    **dict.fromkeys([(name, 4) for name in ("train", "scale", "record")], (HERE, "real_money_without_a_yes_is_4")),
    ("check", 1): (HERE, "what_is_missing_is_1"),
    ("bench", 1): (HERE, "what_is_missing_is_1"),
    ("serve", 3): (HERE, "nothing_that_keeps_the_caps_is_3"),
    ("serve", 4): (MONEY, "a_model_is_not_served_on_rented_machines_unasked"),
    ("resume", 4): (MONEY, "new_limits_of_a_run_that_rents_are_asked_for"),
    ("tune", 3): (TUNE, "a_budget_that_no_plan_keeps_names_the_cheapest_possible"),
    ("plan", 3): (TUNE, "a_deadline_that_no_allocation_meets_names_the_fastest_possible"),
    ("scale", 3): (SCALE, "a_job_that_fits_no_memory_cannot_be_certified"),
    ("yes", 4): ("tests/cli/test_agent_questions.py", "only_somebody_at_a_terminal_can_say_yes"),
    ("tune", 4): (MONEY, "only_places_that_send_a_bill_rent"),  # it begins as `train` does
}
"""Which test shows that a command ends with a code. What follows a run to its end asks `print_end` for it."""


def test_each_code_of_the_page_is_shown_by_a_test() -> None:
    assert SHOWN.keys() == DOCUMENTED
    for file, name in SHOWN.values():
        assert f"def test_{name}(" in (PAGE.parents[2] / file).read_text(encoding="utf-8"), name


ELASTIC = (
    "batch: 128\ncheckpoints: true\nelastic: {workers: 1..4, batch: 64..256, target: accuracy >= 0.9, epochs: 500}"
)


def test_no_answer_is_3(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    assert mlcd("train", recorded_job(), "--budget", "0.5").code == ExitCode.INFEASIBLE
    for command in ("attach", "watch"):
        assert mlcd(command, "last").code == ExitCode.INFEASIBLE
    assert mlcd("resume", "last", "--budget", "0.6").code == ExitCode.INFEASIBLE
    assert mlcd("what-if", "last").code == ExitCode.DONE
    assert mlcd("show", "last").code == ExitCode.DONE
    assert mlcd("launch", "last").code == ExitCode.REFUSED


def test_a_job_that_did_not_finish_is_1(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    assert mlcd("train", recorded_job(), "--decide-only").code == ExitCode.DONE
    ledger = open_ledger()
    ledger.append("demo-1", VirtualClock(), [Ended(False, "the job ended with an error")])
    ledger.close()
    for command in ("attach", "watch"):
        assert mlcd(command, "demo-1").code == ExitCode.UNFINISHED


def test_a_target_that_is_not_reached_is_1(mlcd: Mlcd, write_job: WriteJob) -> None:
    job = write_job(ELASTIC, work="{dataset: 100k, epochs: 60}", search="{instances: [g4dn.xlarge]}")
    for command in ("launch", "resume"):
        assert mlcd("scale", job, "--decide-only").code == ExitCode.DONE
        assert mlcd(command, "last").code == ExitCode.UNFINISHED
    assert mlcd("scale", job, "-y").code == ExitCode.UNFINISHED


def test_nothing_that_keeps_the_caps_is_3(mlcd: Mlcd, tmp_path: Path) -> None:
    on = f"recorded:{write_device(tmp_path / 'device')}"
    assert mlcd("serve", "net_a", "--on", on, "--latency-p95", "0.1ms", "--trials", "4").code == ExitCode.INFEASIBLE


@pytest.mark.parametrize("command", ["train", "scale", "record"])
def test_real_money_without_a_yes_is_4(
    mlcd: Mlcd, write_job: WriteJob, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setitem(sys.modules, "sky", ModuleType("sky"))
    bucket = "file_mounts: {/checkpoints: {name: my-bucket, mode: MOUNT}}\n"
    job = write_job(ELASTIC if command == "scale" else "", task=bucket, work="{dataset: 100k, epochs: 60}")
    more = ("--out", "mine") if command == "record" else ("--budget", "20")
    assert mlcd(command, job, "--on", "skypilot:aws", *more).code == ExitCode.YES_NEEDED


def test_what_is_missing_is_1(mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ABOUT, "ray", lambda: [Check("ray", False, "none")])
    assert mlcd("check", "ray").code == ExitCode.UNFINISHED
    assert CRASHED == ExitCode.UNFINISHED
