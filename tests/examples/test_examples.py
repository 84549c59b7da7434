"""Every example that trains, in small: on real nodes of this machine, to its end, and it has learned something."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

import mlcd
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.local.teardown import marks
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.serve.space import load_knobs

pytestmark = pytest.mark.live

EXAMPLES = Path(__file__).parents[2] / "examples"
TYPE = Offer("test", 0.1, 0.9, 4.0, network_gbps=1.0, cloud="local")  # large, to be up soon
LONGEST_S = 240.0


@dataclass
class Machine:
    """This machine's nodes, for examples one after the other."""

    home: Path
    launches: int = 0
    samples: list[Sample] = field(default_factory=list)
    ended: Ended | None = None

    @property
    def name(self) -> str:
        return f"examples{os.getpid()}"

    def run(self, job: mlcd.Job, nodes: int) -> str:
        """Run a job to its end; what its first process has printed."""
        self.launches += 1
        isolated = why_not_isolated() is None
        backend = Local(self.home, WallClock(datetime.now(UTC)), LONGEST_S, isolated=isolated)
        order = Configuration(TYPE, nodes)
        launch = Launch(f"{self.name}-{self.launches}", order, Purpose.RUN, job.work_samples, LONGEST_S, self.launches)
        with closing(backend.run(job, launch)) as events:
            told = list(events)
        self.samples = [event for event in told if isinstance(event, Sample)]
        self.ended = next((event for event in told if isinstance(event, Ended)), None)
        assert self.ended is not None, f"it took longer than {LONGEST_S:.0f} s"
        assert self.ended.outcome is Outcome.OK, f"{self.ended.detail}\n{self.ended.log}"
        return (self.home / "launches" / launch.label / "0.log").read_text(encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert not {mark for mark in marks() if mark.startswith(f"{machine.name}-")}


def example(file: str, small: str) -> mlcd.Job:
    """An example's job with another command line, to do less."""
    job = mlcd.load_job(EXAMPLES / file)
    return replace(job, task={**job.task, "run": small})


def needs(*packages: str) -> None:
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -e '.[frameworks]'")


DIGITS = [
    ("tensorflow-digits/all-reduce.yaml", "python train.py --epochs 6", 6 * 1_440, "tensorflow"),
    ("tensorflow-digits/parameter-server.yaml", "python train.py --epochs 6", 6 * 1_440, "tensorflow"),
    ("jax-digits/job.yaml", "python train.py --epochs 10", 10 * 1_536, "jax"),
]


@pytest.mark.night  # at each change: PyTorch's examples below; the trackers of the others in tests/clouds/frameworks
@pytest.mark.parametrize(("file", "small", "samples", "package"), DIGITS, ids=[file for file, *_ in DIGITS])
def test_digits_are_learned_on_two_nodes(file: str, small: str, samples: float, package: str, machine: Machine):
    needs(package)
    output = machine.run(example(file, small), nodes=2)
    accuracy = re.findall(r"(?m)^accuracy ([\d.]+)$", output)
    assert len(accuracy) == 1
    assert float(accuracy[0]) > 0.9
    assert machine.samples[-1].samples == samples
    assert len(machine.samples) >= 2


NODES = """
probe: 60s
startup: 90s
nodes: 1..2
types: {test: {cpus: 0.9, memory: 4GB, link: 1Gbit, usd_per_hour: $1}}
"""


@pytest.mark.night  # the script is trained below, and `mlcd train` on nodes of this machine in tests/cli/test_live.py
def test_mlcd_train_probes_chooses_trains_to_the_end_and_the_result_is_good(tmp_path: Path):
    needs("torch")
    done, name = digits(tmp_path, 20, "train")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the job ran to its end" in done.stdout
    last = max((tmp_path / "home" / "launches").iterdir(), key=lambda folder: folder.name)
    accuracy = re.findall(r"(?m)^accuracy ([\d.]+) after 20 epochs$", (last / "0.log").read_text(encoding="utf-8"))
    assert float(accuracy[-1]) > 0.9
    assert not {mark for mark in marks() if mark.startswith(f"{name}-")}


def test_mlcd_scale_finds_workers_and_batch_on_the_way_to_the_target(tmp_path: Path):
    needs("torch")
    grid = ("--workers", "1..2", "--batch", "64..128", "--target", "accuracy >= 0.7")
    done, name = digits(tmp_path, 150, "scale", *grid)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reached accuracy >= 0.7" in done.stdout + done.stderr
    # Whether its noise is known before the target is reached is a race; tests/clouds/frameworks hold the noise itself.
    (stored,) = (tmp_path / "home" / "models").iterdir()
    assert "digits-cnn" in stored.read_text(encoding="utf-8")
    assert not {mark for mark in marks() if mark.startswith(f"{name}-")}


def digits(folder: Path, epochs: int, *command: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """An `mlcd` command on the digits, with at most so many epochs; and the name of its job."""
    shutil.copy(EXAMPLES / "pytorch-digits" / "train.py", folder)
    (folder / "nodes.yaml").write_text(NODES, encoding="utf-8")
    name = f"digits{os.getpid()}{command[0]}"
    job = (EXAMPLES / "pytorch-digits" / "job.yaml").read_text(encoding="utf-8")
    for old, new in (
        ("pytorch-digits\n", f"{name}\n"),
        ("epochs 150", f"epochs {epochs}"),
        ("epochs: 150", f"epochs: {epochs}"),
    ):
        assert old in job
        job = job.replace(old, new)
    (folder / "job.yaml").write_text(job, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mlcd",
            command[0],
            "job.yaml",
            "--on",
            "local:nodes.yaml",
            "--budget",
            "1",
            "-y",
            *command[1:],
        ],
        cwd=folder,
        env={**os.environ, "MLCD_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, name


@pytest.mark.night  # at each change: checkpoints in test_switching.py, and the example below
def test_a_text_is_learned_and_another_number_of_nodes_goes_on_from_the_checkpoint(machine: Machine):
    needs("torch")
    file = "pytorch-char-rnn/job.yaml"
    output = machine.run(example(file, "python train.py --steps 20"), nodes=2)
    assert machine.samples[-1] == replace(machine.samples[-1], samples=20 * 64, saved=20 * 64)
    assert "step 20," in output
    output = machine.run(example(file, "python train.py --steps 40"), nodes=1)
    assert machine.samples[-1] == replace(machine.samples[-1], samples=20 * 64, saved=20 * 64)
    assert "step 20," not in output
    learned, chance = re.findall(r"loss ([\d.]+) on text it has not seen; ([\d.]+) is chance", output)[0]
    assert float(learned) < 0.7 * float(chance)


def test_a_script_without_a_tracker_is_read_by_its_pattern(machine: Machine):
    output = machine.run(example("no-tracker/job.yaml", "python train.py 200"), nodes=1)
    assert machine.samples[-1].samples == 200 * 64
    assert float(output.rpartition("loss ")[2]) < 1e-3


def test_every_example_that_trains_is_run_here_and_can_be_read_as_it_is():
    # Jobs that are planned below, and knobs that train nothing; and test_llm_examples.py.
    elsewhere = {"functions", "serve", "llm_fsdp2", "llm_trainer", "llm_plans"}
    files = [path for path in EXAMPLES.glob("*/*.yaml") if path.parent.name not in elsewhere]
    files = [path for path in files if path.name != "nodes.yaml"]
    jobs = {str(path.relative_to(EXAMPLES)) for path in files}
    more = {"pytorch-digits/job.yaml", "pytorch-char-rnn/job.yaml", "no-tracker/job.yaml"}
    assert jobs == {file for file, *_ in DIGITS} | more
    for file in jobs:
        job = mlcd.load_job(EXAMPLES / file)
        assert job.on.partition(":")[0] == "local"
        assert job.goal.limited


@pytest.mark.parametrize("path", sorted((EXAMPLES / "serve").glob("*.yaml")), ids=lambda path: path.name)
def test_every_file_of_knobs_can_be_read_and_has_a_price(path: Path):
    read = load_knobs(path)
    assert read.table.knobs
    assert read.table.usd_per_hour


@pytest.mark.skipif(find_spec("lithops") is None, reason="no Lithops: pip install 'mlcd[lithops]'")
@pytest.mark.night  # at each change tests/clouds/test_functions_live.py trains by functions, in small
def test_functions_of_this_machine_train_a_network_to_its_target(mlcd_process):
    needs("torch")
    job, fixed = EXAMPLES / "functions" / "mobilenet.yaml", ("--memory", "1769", "--storage", "vm-ps")
    run = mlcd_process("train", job, *fixed, "--budget", "0.5", "-y", "-o", "json").document
    assert run["status"] == "finished"
    assert run["epochs"][-1]["loss"] <= run["target"]["value"]


@pytest.mark.parametrize("path", sorted((EXAMPLES / "functions").glob("*.yaml")), ids=lambda path: path.name)
def test_every_job_on_functions_can_be_planned(request: pytest.FixtureRequest, path: Path):
    plan = request.getfixturevalue("mlcd")  # the command line; `mlcd` is the package here
    modelled = plan("plan", path, "--on", "functions:simulated", "--trials", "64", "--budget", "8000")
    assert modelled.code == 0
    assert "modelled from published figures" in modelled.out
