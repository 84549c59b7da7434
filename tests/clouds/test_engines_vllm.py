"""vLLM itself, on a CPU, with a model of random weights: `make .venv-vllm/installed`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.tiny_llama import tiny_llama
from mlcd_fixtures.vllm import PROGRAMS, needs_vllm

pytestmark = [pytest.mark.live, pytest.mark.night, needs_vllm]
KNOBS = {
    "knobs": {
        "threads": [1],
        "precision": ["bf16"],
        "sequences": [8],
        "kv_cache_gb": [1],
        "eager": ["eager"],
        "load_format": ["dummy"],
    },
    "price": {"base": 0.04},
    "engine": {"name": "vllm", "startup": "540s"},  # 20 s on quiet cores; minutes beside other tests
    "prompts": {"input_tokens": 16, "output_tokens": 8},
    "sweep": [1, 4],
    "trial": "8s",
}


def test_vllm_is_started_swept_and_ended(
    mlcd: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    (tmp_path / "knobs.yaml").write_text(json.dumps(KNOBS), encoding="utf-8")
    model = tiny_llama(tmp_path / "tiny")
    answer = mlcd("serve", model, "--knobs", tmp_path / "knobs.yaml", "--trials", "1", "-o", "json")
    assert answer.code == 0, answer.err
    (trial,) = answer.document["trials"]
    assert trial["rate"] > 0
    assert {"ttft_p95", "tpot_p95"} <= set(trial["figures"])
    assert trial["peak_gb"] > 1.0, "all of its processes are found by their mark"
    assert answer.document["spent_usd"] > 0
