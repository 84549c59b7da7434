"""The tracker's calls in a user's script: what they report, when, and that they cost nothing outside of MLCD."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlcd_tracker
from mlcd.clouds.frameworks import ProgressReader, processes
from mlcd.core.job import Communication, Job
from mlcd.core.measurement import Sample
from mlcd_tracker import EVERY_S, Tracker
from mlcd_tracker.memory import used_share
from mlcd_tracker.noise import Noise

ROOT = Path(mlcd_tracker.__file__).parents[1]
INSIDE = {"MLCD_LAUNCH": "run-1"}


@dataclass
class Terminal:
    """A clock that is set by hand, and the lines that were written."""

    now_s: float = 100.0
    lines: list[str] = field(default_factory=list)

    def tracker(self, **environ: str) -> Tracker:
        return Tracker({**INSIDE, **environ}, lambda line: self.lines.append(line.decode()), lambda: self.now_s)

    def samples(self) -> list[Sample]:
        return ProgressReader(Job("job", 1.0)).feed("".join(self.lines), 0.0)


def test_it_reports_a_few_times_a_second_however_many_steps_there_are():
    terminal = Terminal()
    tracker = terminal.tracker()
    for _ in range(10_000):
        terminal.now_s += 0.001
        tracker.step(32)
    assert 10 / EVERY_S - 1 <= len(terminal.lines) <= 10 / EVERY_S + 1


def test_a_step_that_takes_longer_is_reported_when_it_is_over():
    terminal = Terminal()
    tracker = terminal.tracker()
    for _ in range(3):
        terminal.now_s += 5.0
        tracker.step(8)
    assert [(round(s.elapsed_s, 6), s.samples) for s in terminal.samples()] == [(5, 8), (10, 16), (15, 24)]


def test_a_report_is_one_line_that_the_reader_understands():
    terminal = Terminal()
    tracker = terminal.tracker()
    terminal.now_s += 1.5
    tracker.step(12_800)
    assert terminal.lines == ["@mlcd t=1.5000 samples=12800 saved=0\n"]


def test_what_a_checkpoint_holds_is_told_at_once():
    terminal = Terminal()
    tracker = terminal.tracker()
    for samples in (64, 64):
        terminal.now_s += 0.01
        tracker.step(samples)
    terminal.now_s += 0.01
    tracker.saved()
    terminal.now_s += 0.01
    tracker.step(64)
    tracker.close()
    assert [(sample.samples, sample.saved) for sample in terminal.samples()] == [(64, 0), (128, 128), (192, 128)]


@pytest.mark.parametrize("samples", [1.0, 0.5, 1e9, 123_456_789, 1e15])
def test_counts_of_any_size_arrive_as_they_were_sent(samples: float):
    terminal = Terminal()
    terminal.now_s += 1.0
    terminal.tracker().step(samples)
    assert [sample.samples for sample in terminal.samples()] == [samples]


def test_outside_mlcd_it_does_nothing():
    lines: list[bytes] = []
    tracker = Tracker({}, lines.append)
    tracker.step(64)
    tracker.saved()
    tracker.close()
    assert lines == []
    assert tracker.samples == 0


def torchrun(rank: int, node: int) -> dict[str, str]:
    """What torchrun leaves of what MLCD has set: the rank is its own, MLCD_RANK is the node's."""
    return {"TORCHELASTIC_RUN_ID": "none", "RANK": str(rank), "MLCD_RANK": str(node)}


def tf_config(role: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": {}, "task": {"type": role, "index": index}})}


@pytest.mark.parametrize(
    ("environ", "reports"),
    [
        ({}, True),
        ({"MLCD_RANK": "0"}, True),
        ({"MLCD_RANK": "3"}, False),
        (torchrun(0, 0), True),
        (torchrun(1, 0), False),  # the second process of the first node
        (torchrun(2, 1), False),
        ({"RANK": "1", "MLCD_RANK": "0"}, True),  # not from torchrun: RANK may be anybody's
        (tf_config("chief", 0), True),
        (tf_config("worker", 0), True),
        (tf_config("worker", 1), False),
        (tf_config("ps", 0), False),
        ({"TF_CONFIG": ""}, True),
        ({"TF_CONFIG": "no JSON"}, True),
        ({"TF_CONFIG": "[]"}, True),
    ],
)
def test_one_process_of_a_job_reports(environ: dict[str, str], reports: bool):
    assert Terminal().tracker(**environ).active is reports


@pytest.mark.parametrize("communication", Communication)
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_the_process_that_reports_is_the_one_that_is_read(communication: Communication, nodes: int):
    for process in processes(communication, [f"10.0.0.{i}" for i in range(nodes)], 29_500):
        assert Terminal().tracker(**process.environment).active is process.reports


def script(source: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{source}"],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


STEPS = "import mlcd_tracker\nfor _ in range(100): mlcd_tracker.step(10)\nmlcd_tracker.saved()\nmlcd_tracker.step(10)"


def test_a_script_that_ends_reports_its_last_steps():
    done = script(STEPS, **INSIDE)
    assert done.stdout.splitlines()[-1].endswith("samples=1010 saved=1000")
    assert script(f"{STEPS}\nraise SystemExit(3)", **INSIDE).stdout.splitlines()[-1].endswith("samples=1010 saved=1000")


def test_a_script_outside_mlcd_prints_nothing_and_has_no_place_for_checkpoints():
    done = script(f"{STEPS}\nassert mlcd_tracker.checkpoint_dir() is None")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_place_for_checkpoints_is_the_one_that_mlcd_says():
    done = script("import mlcd_tracker; print(mlcd_tracker.checkpoint_dir())", MLCD_CHECKPOINT_DIR="/data/run-1")
    assert done.stdout == "/data/run-1\n"


def test_a_job_that_finds_all_its_work_done_says_so():
    done = script("import mlcd_tracker; mlcd_tracker.checkpoint_dir()", MLCD_CHECKPOINT_DIR="/data/run-1", **INSIDE)
    assert done.stdout.endswith("samples=0 saved=0\n")


def test_a_reader_that_went_away_does_not_stop_the_training():
    """MLCD may be killed while the job goes on."""
    read, write = os.pipe()
    os.close(read)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{STEPS}\nsys.stderr.write('trained')"
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code], env=INSIDE, stdout=gone, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "trained")


def test_it_needs_nothing_but_python():
    heavy = "{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'mlcd_tracker'}"
    done = script(f"import mlcd_tracker; print({heavy})")
    assert done.stdout == "{'__main__'}\n"


# What a job that MLCD may resize asks and tells


def test_the_batch_is_mlcds_choice_or_the_scripts_own():
    assert Terminal().tracker().batch(128) == 128
    assert Terminal().tracker(MLCD_BATCH="256").batch(128) == 256


@pytest.mark.parametrize("batch", ["", "0", "-3", "many", "1.5"])
def test_a_batch_that_is_none_is_refused_by_name(batch: str):
    with pytest.raises(ValueError, match=r"^MLCD_BATCH=.*expected a number of samples"):
        Terminal().tracker(MLCD_BATCH=batch).batch(128)


def test_a_metric_is_told_at_once_and_kept_on_later_lines():
    terminal = Terminal()
    tracker = terminal.tracker()
    tracker.step(64)
    terminal.now_s += 0.01
    tracker.metric(0.5)
    terminal.now_s += 0.01
    tracker.saved()
    terminal.now_s += 0.01
    tracker.metric(0.75)
    tails = [line.partition("saved=")[2] for line in terminal.lines]
    assert tails == ["0\n", "0 metric=0.5\n", "64 metric=0.5\n", "64 metric=0.75\n"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_no_number_is_told_as_such(value: float):
    terminal = Terminal()
    terminal.tracker(MLCD_TARGET=">=0.9").metric(value)
    assert terminal.lines[-1].endswith(" metric=nan\n")


@pytest.mark.parametrize(
    ("target", "values", "reached"),
    [
        (">=0.97", [0.5, 0.97, 0.6], [False, True, True]),
        ("<=0.2", [0.5, 0.2, 0.9], [False, True, True]),
        (">=0.97", [math.nan, 0.96], [False, False]),
        ("<=0.2", [math.nan], [False]),
        ("", [1e9, -1e9], [False, False]),
    ],
)
def test_a_target_once_reached_stays_so(target: str, values: list[float], reached: list[bool]):
    environ = {"MLCD_TARGET": target} if target else {}
    tracker = Terminal().tracker(**environ)
    assert [tracker.metric(value) for value in values] == reached


def test_every_process_knows_that_the_target_is_reached_and_one_tells():
    terminal = Terminal()
    assert terminal.tracker(MLCD_TARGET=">=0.9", MLCD_RANK="3").metric(0.95)
    assert terminal.lines == []


@pytest.mark.parametrize("target", ["0.9", ">0.9", "==1", ">=", ">=nan", ">=good"])
def test_a_target_that_is_none_is_refused_by_name(target: str):
    with pytest.raises(ValueError, match=r"^MLCD_TARGET=.*expected a bound"):
        Terminal().tracker(MLCD_TARGET=target).metric(1.0)


@pytest.mark.parametrize(
    ("rule", "noise", "scale"),
    [
        ({}, None, 1.0),
        ({"MLCD_LR_RULE": "none"}, 100.0, 1.0),
        ({"MLCD_LR_RULE": "linear"}, None, 4.0),
        ({"MLCD_LR_RULE": "sqrt"}, None, 2.0),
        ({"MLCD_LR_RULE": "adascale"}, None, 1.0),
        ({"MLCD_LR_RULE": "adascale"}, 64.0, 2 / 1.25),
    ],
)
def test_the_learning_rate_follows_the_batch_by_the_owners_rule(rule: dict[str, str], noise: float, scale: float):
    assert Terminal().tracker(MLCD_BATCH="256", **rule).lr_scale(64, noise) == scale
    assert Terminal().tracker(**rule).lr_scale(64, noise) == 1.0  # without a choice of MLCD's nothing changes


@given(noise=st.floats(1e-6, 1e9), reference=st.integers(1, 10_000), factor=st.integers(1, 1_000))
def test_adascales_gain_is_between_one_and_the_batchs_growth(noise: float, reference: int, factor: int):
    tracker = Terminal().tracker(MLCD_BATCH=str(reference * factor), MLCD_LR_RULE="adascale")
    assert 1 - 1e-9 <= tracker.lr_scale(reference, noise) <= factor * (1 + 1e-9)


def test_a_rule_that_is_none_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^MLCD_LR_RULE='cubic': expected none, linear, sqrt, adascale"):
        Terminal().tracker(MLCD_LR_RULE="cubic").lr_scale(64)


def test_a_job_is_asked_to_leave_by_a_file_that_is_looked_for_a_few_times_a_second(tmp_path: Path):
    terminal, flag = Terminal(), tmp_path / "leave"
    tracker = terminal.tracker(MLCD_LEAVE=str(flag))
    assert not tracker.leaving()
    flag.touch()
    terminal.now_s += EVERY_S / 2
    assert not tracker.leaving()
    terminal.now_s += EVERY_S
    assert tracker.leaving()
    flag.unlink()
    terminal.now_s += EVERY_S
    assert tracker.leaving()


def test_only_the_process_that_reports_sees_that_it_shall_leave(tmp_path: Path):
    flag = tmp_path / "leave"
    flag.touch()
    assert Terminal().tracker(MLCD_LEAVE=str(flag)).leaving()
    assert not Terminal().tracker(MLCD_LEAVE=str(flag), MLCD_RANK="1").leaving()
    assert not Tracker({"MLCD_LEAVE": str(flag)}).leaving()


def test_the_noise_is_on_every_line_once_it_is_known():
    terminal = Terminal()
    tracker = terminal.tracker()
    known: list[Noise] = []
    tracker.noise = lambda: known[-1] if known else None
    tracker.step(64)
    known.append(Noise(scale=812.34567, error=0.123456, stable=True, gamma=0.3141592))
    terminal.now_s += 1.0
    tracker.step(64)
    tracker.metric(0.5)
    noise = "noise=812.346 noise_error=0.1235 noise_stable=1 gamma=0.314159"
    assert [line.partition("saved=")[2] for line in terminal.lines] == [
        "0\n",
        f"0 {noise}\n",
        f"0 metric=0.5 {noise}\n",
    ]


def test_a_script_outside_mlcd_keeps_its_own_batch_rate_and_place():
    asked = "m.batch(64), m.lr_scale(64), m.lr_rule(), m.metric(1.0), m.leaving(), m.inside()"
    asks = f"import mlcd_tracker as m; print({asked})"
    assert script(asks).stdout == "64 1.0 none False False False\n"


@dataclass
class Gpu:
    """PyTorch on a GPU of 100 GB, of which 2 are beside what its allocator holds."""

    allocated_gb: float
    reserved_gb: float = 90.0
    initialized: bool = True

    @property
    def cuda(self) -> Gpu:
        return self

    def is_initialized(self) -> bool:
        return self.initialized

    def mem_get_info(self) -> tuple[int, int]:
        return int(98e9 - self.reserved_gb * 1e9), int(100e9)

    def memory_reserved(self) -> int:
        return int(self.reserved_gb * 1e9)

    def max_memory_allocated(self) -> int:
        return int(self.allocated_gb * 1e9)


def test_the_most_of_a_gpu_s_memory_comes_with_the_reports():
    terminal, gpu = Terminal(), Gpu(60.0)
    tracker = terminal.tracker()
    tracker.memory = lambda: used_share(gpu)
    for gpu.allocated_gb in (60.0, 85.0, 10.0):  # a script may reset PyTorch's own peak
        terminal.now_s += 1.0
        tracker.step(1)
    assert [sample.memory for sample in terminal.samples()] == pytest.approx([0.62, 0.87, 0.87])


@pytest.mark.parametrize(
    "torch", [None, Gpu(60.0, initialized=False), object()], ids=["none", "on a CPU", "half there"]
)
def test_without_a_gpu_nothing_is_said_of_its_memory(torch):
    assert used_share(torch) is None
    terminal = Terminal()
    terminal.tracker().saved()
    assert "memory" not in terminal.lines[0]
