"""The diagnosis of failed jobs, from the output of real scripts that really fail."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socket import socket

import pytest

from mlcd.clouds.frameworks import diagnose
from mlcd.clouds.frameworks.failures import LAST_LINES, Diagnosis, blame, last_lines
from mlcd.clouds.local.backend import OUT_OF_MEMORY
from mlcd.core.measurement import Outcome


def failed(command: str, folder: Path) -> tuple[int, str]:
    """Run a command as a node does: its status and its output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.returncode, done.stdout


def diagnosis(command: str, folder: Path) -> Diagnosis:
    return diagnose(*failed(command, folder))


def script(folder: Path, source: str) -> str:
    (folder / "train.py").write_text(source, encoding="utf-8")
    return "python train.py"


def test_a_traceback_is_summarised_by_its_last_line(tmp_path: Path):
    told = diagnosis(script(tmp_path, "print('epoch 1')\nraise ValueError('the rate is negative')"), tmp_path)
    assert told == Diagnosis(Outcome.FAILED, "the job raised ValueError: the rate is negative")


def test_an_error_that_led_to_another_one_is_not_the_reason(tmp_path: Path):
    source = "try: open('cache')\nexcept OSError as error: raise ValueError('no cache') from error"
    assert diagnosis(script(tmp_path, source), tmp_path).advice == "the job raised ValueError: no cache"


@pytest.mark.parametrize("statement", ["import nowhere_to_be_found", "from nowhere_to_be_found.inside import thing"])
def test_the_advice_for_a_missing_module_is_to_install_it(statement: str, tmp_path: Path):
    told = diagnosis(script(tmp_path, statement), tmp_path)
    assert told.outcome is Outcome.FAILED
    assert "pip install nowhere_to_be_found" in told.advice


def test_a_missing_module_of_python_m_is_recognised(tmp_path: Path):
    assert "pip install nowhere_to_be_found" in diagnosis("python -m nowhere_to_be_found", tmp_path).advice


@pytest.mark.parametrize("source", ["kept = [bytearray(1 << 20) for _ in range(4_000)]", "bytearray(4_000_000_000)"])
def test_a_process_without_enough_memory_is_out_of_memory(source: str, tmp_path: Path):
    told = diagnosis(f"ulimit -d 300000; {script(tmp_path, source)}", tmp_path)
    assert told == Diagnosis(Outcome.OUT_OF_MEMORY, "it ran out of memory")


@pytest.mark.night
def test_out_of_memory_errors_of_numpy_and_torch_are_recognised(tmp_path: Path):
    source = "import numpy; numpy.ones(10**9)"
    assert diagnosis(f"ulimit -d 2000000; {script(tmp_path, source)}", tmp_path).outcome is Outcome.OUT_OF_MEMORY
    pytest.importorskip("torch", reason="torch is not installed")
    source = "import torch; torch.ones(10**9)"
    assert diagnosis(f"ulimit -d 2000000; {script(tmp_path, source)}", tmp_path).outcome is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python nowhere.py", "nowhere.py"),
        ("bash nowhere.sh", "nowhere.sh"),
        ("./nowhere.sh", "./nowhere.sh"),
        ("set -e; cat data/nowhere.csv", "data/nowhere.csv"),
        ("""python -c "open('data/nowhere.csv')" """, "data/nowhere.csv"),
    ],
)
def test_a_missing_file_is_named(command: str, path: str, tmp_path: Path):
    told = diagnosis(command, tmp_path)
    assert told.outcome is Outcome.FAILED
    assert f"{path};" in told.advice
    assert "relative to `workdir:`" in told.advice


def test_a_missing_command_is_named(tmp_path: Path):
    told = diagnosis("nowhere-to-be-found train.py", tmp_path)
    assert told == Diagnosis(Outcome.FAILED, "no such command: nowhere-to-be-found; install it in `setup:`")


@pytest.mark.parametrize("command", ["kill -9 $$", "(kill -9 $BASHPID); exit $?"])
def test_a_killed_process_is_a_lost_node(command: str, tmp_path: Path):
    assert diagnosis(command, tmp_path).outcome is Outcome.PREEMPTED


def test_other_signals_and_exit_codes_are_reported_as_they_are(tmp_path: Path):
    assert diagnosis("kill -6 $$", tmp_path).advice == "its process was ended by signal 6"
    assert diagnosis("exit 3", tmp_path) == Diagnosis(Outcome.FAILED, "its command ended with exit code 3")


def test_the_end_of_a_log_has_the_jobs_own_last_lines():
    output = "".join(f"line {i}\n\n@mlcd t={i} samples=1 saved=0\n" for i in range(100))
    assert last_lines(output).splitlines() == [f"line {i}" for i in range(100 - LAST_LINES, 100)]
    assert last_lines("") == ""


TWO_RANKS = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1 and sys.argv[1] == "raise": raise ValueError("the rate is negative")
if dist.get_rank() == 1 and sys.argv[1] == "kill": os.kill(os.getpid(), 9)
while True: dist.all_reduce(torch.ones(1))
"""


ELASTIC = """E1119 06:50:40.123 7 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -9) rank: 0
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED
"""


def test_out_of_memory_is_recognised_after_torchruns_own_message():
    full = f"step 1\n{ELASTIC}\n{OUT_OF_MEMORY.decode()}"
    assert diagnose(1, full).outcome is Outcome.OUT_OF_MEMORY
    assert diagnose(1, f"step 1\n{ELASTIC}").outcome is Outcome.PREEMPTED


@pytest.mark.night  # at each change: a rank that fails in clouds/test_local.py
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("raise", Diagnosis(Outcome.FAILED, "the job raised ValueError: the rate is negative")),
        ("kill", diagnose(-9, "")),
    ],
)
def test_of_several_failed_ranks_the_first_one_is_blamed(how: str, expected: Diagnosis, tmp_path: Path):
    """And torchrun's page about itself, which follows the script's own words, says nothing."""
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "train.py").write_text(TWO_RANKS, encoding="utf-8")
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = f"--nnodes 2 --nproc-per-node 1 --master-addr 127.0.0.1 --master-port {port}"
    with ThreadPoolExecutor(2) as pool:
        ends = list(
            pool.map(lambda rank: failed(f"torchrun {place} --node-rank {rank} train.py {how}", tmp_path), range(2))
        )
    assert min(ends, key=lambda end: blame(*end)) is ends[1]
    assert diagnose(*ends[1]) == expected
    assert "ChildFailedError" not in last_lines(ends[0][1]) + last_lines(ends[1][1])
    assert "peer" in diagnose(*ends[0]).advice
