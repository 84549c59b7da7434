"""Command lines of engines: every knob is a flag, a variable, or in the notes."""

import re
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.vllm import PROGRAMS, needs_vllm

from mlcd.core.errors import UnknownName
from mlcd.planners.serve.llm.flags import WITH_FLAGS, command_line, filled_in

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
}
NUMBERS = {name for name, value in KNOBS.items() if isinstance(value, int)} | {"threads"}


def test_vllm_gets_every_knob_as_a_flag() -> None:
    line = command_line("vllm", "org/model", {**ON_GPUS, "batched_tokens": 8192, "sequences": 256.0}, port=8123)
    assert shlex.join(line.arguments) == (
        "vllm serve org/model --host 0.0.0.0 --port 8123 --tensor-parallel-size 4 --pipeline-parallel-size 1 "
        "--data-parallel-size 2 --enable-expert-parallel --quantization fp8 --kv-cache-dtype fp8 "
        "--max-num-batched-tokens 8192 --max-num-seqs 256"
    )
    assert set(line.notes) == {"gpu", "gpus"}


def test_vllm_on_a_cpu_is_bound_to_cores() -> None:
    knobs: dict[str, str | int | float] = {"threads": 2, "kv_cache_gb": 0.5, "eager": "eager", "precision": "fp32"}
    line = command_line("vllm", "m", knobs)
    assert line.environment == {"OMP_NUM_THREADS": "2", "VLLM_CPU_OMP_THREADS_BIND": "0-1"}
    assert line.arguments[-5:] == ("--kv-cache-memory-bytes", "0.5g", "--enforce-eager", "--dtype", "float32")
    assert str(line).startswith("OMP_NUM_THREADS=2 VLLM_CPU_OMP_THREADS_BIND=0-1 vllm serve m ")
    assert command_line("vllm", "m", knobs, cores=(3, 5)).environment["VLLM_CPU_OMP_THREADS_BIND"] == "3,5"
    both = command_line("vllm", "m", {"threads": 2, "tp": 2})
    assert both.environment["VLLM_CPU_OMP_THREADS_BIND"] == "0-1|2-3"


def test_llama_cpp_has_one_context_for_all_sequences() -> None:
    line = command_line("llama.cpp", "m.gguf", {"sequences": 8, "context": 4096, "precision": "q4_k_m"}, name="mine")
    assert "--alias mine --parallel 8 --ctx-size 32768" in str(line)
    assert "GGUF" in line.notes["precision"]


@pytest.mark.parametrize("engine", WITH_FLAGS)
def test_no_knob_is_lost(engine: str) -> None:
    line = command_line(engine, "m", {**KNOBS, "block_size": 16})
    assert {*line.where, *line.notes} == {*KNOBS, "block_size"}
    assert "--block-size 16" in str(line)


@given(st.dictionaries(st.sampled_from(sorted(NUMBERS)), st.integers(1, 64)))
def test_a_number_stands_in_the_command_line_or_is_noted(knobs: dict[str, int]) -> None:
    for engine in WITH_FLAGS:
        line = command_line(engine, "m", knobs)
        assert {*line.where, *line.notes} == set(knobs)
        for flag in line.where.values():
            assert flag.startswith("the default") or flag.rpartition(" ")[2] in str(line)


def test_unknown_engines_and_values_are_named() -> None:
    with pytest.raises(UnknownName, match="unknown engine 'vlm'"):
        command_line("vlm", "m", {})
    with pytest.raises(UnknownName, match="unknown precision of vllm 'fp7'"):
        command_line("vllm", "m", {"precision": "fp7"})


def test_a_command_of_the_user_gets_the_values_of_its_knobs() -> None:
    start = "serve {model} --seqs {sequences} --port {port}"
    line = command_line("", "a b", {"sequences": 8, "tp": 2}, start=start)
    assert line.arguments == ("serve", "a b", "--seqs", "8", "--port", "8000")
    assert (line.where, set(line.notes)) == ({"sequences": "the command"}, {"tp"})
    added = command_line("vllm", "m", {"sequences": 8, "tp": 2}, start=f"my-vllm {start}")
    assert added.arguments[-2:] == ("--tensor-parallel-size", "2")
    assert filled_in("${HOME}/serve {gpu}", {"gpu": "a b"}) == "${HOME}/serve 'a b'"
    with pytest.raises(UnknownName, match="knob in the command 'sequences'"):
        command_line("vllm", "m", {}, start=start)


@needs_vllm
@pytest.mark.night
@pytest.mark.live
def test_vllm_knows_every_flag() -> None:
    shown = subprocess.run(
        [PROGRAMS / "vllm", "serve", "--help=all"], capture_output=True, text=True, check=True
    ).stdout
    flags = {part for part in command_line("vllm", "m", {**KNOBS, "kv_cache_gb": 0.5}).arguments if part[:2] == "--"}
    assert flags - set(re.findall(r"--[\w-]+", shown)) == set()
