"""Command lines of engines: every knob is a flag, a variable, or in the notes."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import UnknownName
from mlcd.planners.serve.llm.flags import WITH_FLAGS, command_line, filled_in, named_in

ON_GPUS: dict[str, str | int | float] = {
    "gpu": "h100",
    "gpus": 8,
    "tp": 4,
    "pp": 1,
    "dp": 2,
    "ep": 8,
    "precision": "fp8",
    "kv_cache": "fp8",
}
KNOBS: dict[str, str | int | float] = {
    **ON_GPUS,
    "batched_tokens": 8192,
    "sequences": 256,
    "context": 32768,
    "eager": "eager",
    "threads": 2,
}


def test_vllm_gets_every_knob_as_a_flag() -> None:
    line = command_line("vllm", "org/model", {**ON_GPUS, "batched_tokens": 8192, "sequences": 256.0}, port=8123)
    assert shlex.join(line.arguments) == (
        "vllm serve org/model --served-model-name org/model --host 0.0.0.0 --port 8123 --tensor-parallel-size 4 "
        "--pipeline-parallel-size 1 --data-parallel-size 2 --enable-expert-parallel --quantization fp8 "
        "--kv-cache-dtype fp8 --max-num-batched-tokens 8192 --max-num-seqs 256"
    )
    assert set(line.notes) == {"gpu", "gpus"}


def test_vllm_on_a_cpu_is_set_by_variables() -> None:
    line = command_line("vllm", "m", {"threads": 2, "kv_cache_gb": 4, "eager": "eager", "precision": "fp32"})
    assert line.environment == {"VLLM_CPU_OMP_THREADS_BIND": "0-1", "VLLM_CPU_KVCACHE_SPACE": "4"}
    assert line.arguments[-3:] == ("--enforce-eager", "--dtype", "float32")
    assert str(line).startswith("VLLM_CPU_OMP_THREADS_BIND=0-1 VLLM_CPU_KVCACHE_SPACE=4 vllm serve m ")


def test_half_a_gib_of_cache_is_not_rounded() -> None:
    line = command_line("vllm", "m", {"kv_cache_gb": 0.5})
    assert line.arguments[-2:] == ("--kv-cache-memory-bytes", str(1 << 29))
    assert not line.environment


def test_each_rank_on_a_cpu_has_cores_of_its_own() -> None:
    line = command_line("vllm", "m", {"threads": 2, "tp": 2})
    assert line.environment["VLLM_CPU_OMP_THREADS_BIND"] == "0-1|2-3"


def test_llama_cpp_has_one_context_for_all_sequences() -> None:
    line = command_line("llama.cpp", "m.gguf", {"sequences": 8, "context": 4096, "precision": "q4_k_m"})
    assert "--ctx-size 32768" in str(line)
    assert "GGUF" in line.notes["precision"]


@pytest.mark.parametrize("engine", WITH_FLAGS)
def test_no_knob_is_lost(engine: str) -> None:
    line = command_line(engine, "m", {**KNOBS, "something_new": 3})
    assert {*line.where, *line.notes} == {*KNOBS, "something_new"}


@given(st.dictionaries(st.sampled_from(sorted(KNOBS)), st.integers(1, 64)))
def test_a_number_stands_in_the_command_line_or_is_noted(knobs: dict[str, int]) -> None:
    for engine in WITH_FLAGS:
        line = command_line(engine, "m", knobs)
        assert {*line.where, *line.notes} == set(knobs)
        for flag in line.where.values():
            assert flag == "the default" or flag in str(line)


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(UnknownName, match="unknown engine 'vlm'"):
        command_line("vlm", "m", {})


def test_a_command_of_the_user_gets_the_values_of_its_knobs() -> None:
    command = "serve ${HOME}/m --seqs {sequences} --gpu {gpu}"
    assert filled_in(command, {"sequences": 8, "gpu": "a b"}) == "serve ${HOME}/m --seqs 8 --gpu 'a b'"
    assert named_in(command) == {"sequences", "gpu"}
    with pytest.raises(UnknownName, match="knob in the command 'gpu'"):
        filled_in(command, {"sequences": 8})


def test_vllm_knows_every_flag() -> None:
    vllm = Path(os.environ.get("MLCD_VLLM", ".venv-vllm/bin/vllm"))
    if not vllm.exists():
        pytest.skip("vLLM is not installed here: make .venv-vllm")
    shown = subprocess.run([vllm, "serve", "--help=all"], capture_output=True, text=True, check=True).stdout
    flags = {part for part in command_line("vllm", "m", {**KNOBS, "kv_cache_gb": 0.5}).arguments if part[:2] == "--"}
    assert flags - set(re.findall(r"--[\w-]+", shown)) == set()
