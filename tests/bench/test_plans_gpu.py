"""benchmarks/plans_gpu.py writes what `mlcd bench plans` reads, goes on where it stopped, and needs nothing of MLCD."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mlcd.planners.train.nouns import Adapter, Precision
from mlcd_bench.plans.folder import read_plans

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "plans_gpu.py"

pytestmark = [
    pytest.mark.live,
    pytest.mark.night,
    pytest.mark.skipif(find_spec("transformers") is None, reason="no transformers: pip install -e '.[frameworks]'"),
]


def measure(folder: Path, plans: int) -> str:
    command = [sys.executable, "-I", SCRIPT, folder, "--size", "tiny", "--plans", str(plans), "--gpu-type", "H200"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_its_rows_are_read_as_measured_plans(tmp_path: Path):
    measure(tmp_path, 2)
    again = measure(tmp_path, 4)
    assert again.count("s a step") == 2
    rows = read_plans(tmp_path)
    assert len(rows) == len((tmp_path / "plans.jsonl").read_text(encoding="utf-8").splitlines()) == 4
    assert {row.spec.plan.adapter for row in rows} == {Adapter.FULL, Adapter.LORA}
    assert {row.spec.plan.precision for row in rows} == {Precision.BF16, Precision.PURE_BF16}
    for row, line in zip(rows, (tmp_path / "plans.jsonl").read_text(encoding="utf-8").splitlines(), strict=True):
        steps_s = json.loads(line)["micro_steps_s"]
        assert len(steps_s) == 4
        assert row.step_s is not None
        assert min(steps_s) * row.spec.accumulation < row.step_s < 2 * max(steps_s) * row.spec.accumulation
        assert row.spec.trainable <= row.spec.architecture.params_b * 1e9
