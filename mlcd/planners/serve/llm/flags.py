"""The command line of an engine for given knobs. Trials run it and exports write it, so both start the same.

A knob becomes a flag or an environment variable. A knob that is not in the engine's table becomes the flag of the same
name (`block_size` is `--block-size`). Knobs of the machine or of the load are not set here; `notes` says what to do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod

from mlcd.core.errors import UnknownName

Setting = str | int | float
Settings = Mapping[str, Setting]
Flag = str | Mapping[str, str]
"""A flag with `{}` for a knob's value; or the flags for each value."""

WITH_FLAGS = ("vllm", "sglang", "trtllm", "llama.cpp")
"""The engines whose flags are known here."""
STORED = "a property of the checkpoint: serve one that is stored this way"
NOT_IN_COMMAND = {
    "gpu": "a property of the machine: start the engine on such a GPU",
    "gpus": "a property of the machine: start the engine on that many GPUs",
    "instance": "a property of the machine: start the engine on that type",
    "mode": "a property of the whole deployment, not of one engine",
    "decode_workers": "a property of the whole deployment: start that many engines for decoding",
    "prefill_workers": "a property of the whole deployment: start that many engines for prefill",
    "prefill_tp": "a setting of the prefill engines",
    "prefill_dp": "a setting of the prefill engines",
    "prefill_ep": "a setting of the prefill engines",
    "concurrency": "a property of the load: admit that many concurrent requests",
    "users": "a property of the load: admit that many concurrent requests",
}
"""Knobs that no engine's command line sets, and what to do with them."""


@dataclass(frozen=True)
class CommandLine:
    """Starts an engine. `where`: the flag or variable that sets each knob; `notes`: for knobs that none sets."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As a shell command."""
        return " ".join((*_assigned(self.environment), shlex.join(self.arguments)))


@dataclass(frozen=True)
class _Engine:
    """An engine's start command and its flag for each knob. `name`: the flag for the model's name in its API."""

    start: str
    name: str
    flags: Mapping[str, Flag]
    notes: Mapping[str, str] = field(default_factory=dict)


_DTYPES = {
    "auto": "",
    "bf16": "--dtype bfloat16",
    "fp16": "--dtype float16",
    "fp32": "--dtype float32",
    "fp8": "--quantization fp8",
    "int4": "",  # only for checkpoints stored this way: config.json has the details
    "fp4": "",
}
_ENGINES: Mapping[str, _Engine] = {
    "vllm": _Engine(
        "vllm serve {model} --host {host} --port {port}",
        "--served-model-name",
        {
            "tp": "--tensor-parallel-size {}",
            "pp": "--pipeline-parallel-size {}",
            "dp": "--data-parallel-size {}",
            "precision": _DTYPES,
            "kv_cache": {"auto": "", "fp8": "--kv-cache-dtype fp8"},
            "batched_tokens": "--max-num-batched-tokens {}",
            "sequences": "--max-num-seqs {}",
            "context": "--max-model-len {}",
            "eager": {"eager": "--enforce-eager", "compiled": ""},
            "kv_cache_gb": "--kv-cache-memory-bytes {}g",
            "memory_share": "--gpu-memory-utilization {}",
        },
    ),
    "sglang": _Engine(
        "python -m sglang.launch_server --model-path {model} --host {host} --port {port} --enable-metrics",
        "--served-model-name",
        {
            "tp": "--tp-size {}",
            "pp": "--pp-size {}",
            "dp": "--dp-size {}",
            "ep": "--ep-size {}",
            "precision": _DTYPES,
            "kv_cache": {"auto": "", "fp8": "--kv-cache-dtype fp8_e4m3"},
            "batched_tokens": "--chunked-prefill-size {}",
            "sequences": "--max-running-requests {}",
            "context": "--context-length {}",
            "eager": {"eager": "--disable-cuda-graph", "compiled": ""},
            "memory_share": "--mem-fraction-static {}",
        },
    ),
    "trtllm": _Engine(
        "trtllm-serve {model} --host {host} --port {port}",
        "",
        {
            "tp": "--tp_size {}",
            "pp": "--pp_size {}",
            "ep": "--ep_size {}",
            "batched_tokens": "--max_num_tokens {}",
            "sequences": "--max_batch_size {}",
            "context": "--max_seq_len {}",
            "memory_share": "--kv_cache_free_gpu_memory_fraction {}",
        },
        {
            "precision": STORED,
            "kv_cache": "no flag of its own: write kv_cache_config: {dtype: fp8} into a file, and add --config FILE",
            "dp": "no flag of its own: write enable_attention_dp: true into a file, and add --config FILE",
        },
    ),
    "llama.cpp": _Engine(
        "llama-server --model {model} --host {host} --port {port} --metrics",
        "--alias",
        {
            "batched_tokens": "--batch-size {}",
            "sequences": "--parallel {}",
            "threads": "--threads {}",
            "kv_cache": {"auto": "", "fp8": "--cache-type-k q8_0 --cache-type-v q8_0"},
            "gpu_layers": "--n-gpu-layers {}",
        },
        {"precision": "a property of the GGUF file: serve one that is stored this way"},
    ),
}


def command_line(
    engine: str,
    model: str,
    knobs: Settings,
    *,
    start: str = "",
    name: str = "",
    host: str = "0.0.0.0",
    port: int = 8000,
    cores: Sequence[int] | None = None,
) -> CommandLine:
    """The command that starts an engine with these knobs.

    `start`: the user's command with `{knob}`, `{model}`, `{host}` and `{port}`, in place of the default; knobs that it
    names are not added as flags, and without an engine name no flags are added. `name`: the model's name in the API.
    `cores`: the CPU cores that it may use; None: the first ones. Raises UnknownName for an engine without flags here,
    or for an unknown value of a knob.
    """
    if engine not in _ENGINES and not (start and not engine):
        raise UnknownName("engine", engine, WITH_FLAGS)
    known = _ENGINES.get(engine)
    own = start or (known.start if known is not None else "")
    named = set(re.findall(r"(?<!\$)\{(\w+)\}", own))
    arguments = shlex.split(filled_in(own, {**knobs, "model": model, "host": host, "port": port}))
    if name and known is not None and known.name and not start:
        arguments += [known.name, name]
    environment, where, notes = dict[str, str](), dict[str, str](), dict[str, str]()
    for knob, value in knobs.items():
        if knob in named:
            where[knob] = "the command"
        elif (note := NOT_IN_COMMAND.get(knob) or _note(known, knob)) is not None:
            notes[knob] = note
        elif known is not None:
            added, variables = _spelled(engine, known, knob, knobs, cores)
            arguments += shlex.split(added)
            environment |= variables
            where[knob] = " ".join((*_assigned(variables), *([added] if added else []))) or f"the default ({value})"
    return CommandLine(tuple(arguments), environment, where, notes)


def admitting(engine: str, knobs: Settings, most: int | None) -> dict[str, Setting]:
    """The knobs with the engine's own limit set, so that it admits at most `most` concurrent requests.

    vLLM's limit applies to each data-parallel rank.
    """
    limited = dict(knobs)
    if most is not None and engine in _ENGINES:
        each = ceil(most / (int(knobs.get("dp", 1)) if engine == "vllm" else 1))
        limited["sequences"] = min(each, int(knobs.get("sequences", each)))
    return limited


def _note(known: _Engine | None, knob: str) -> str | None:
    return "the command does not use this knob" if known is None else known.notes.get(knob)


def _spelled(
    engine: str, known: _Engine, knob: str, knobs: Settings, cores: Sequence[int] | None
) -> tuple[str, dict[str, str]]:
    """The flags and the environment variables that set a knob."""
    value = knobs[knob]
    match engine, knob:
        case "vllm", "ep":  # its size follows from tensor and data parallelism
            return "--enable-expert-parallel" if float(value) > 1 else "", {}
        case "vllm", "threads":
            bound = ",".join(map(str, cores)) if cores is not None else _first_cores(int(value), knobs)
            return "", {"OMP_NUM_THREADS": str(value), "VLLM_CPU_OMP_THREADS_BIND": bound}
        case "llama.cpp", "context":  # the flag is for all sequences together
            return f"--ctx-size {int(value) * int(knobs.get('sequences', 1))}", {}
        case "llama.cpp", "tp" | "pp" as split:
            row = {"tp": "row", "pp": "layer"}[split]
            return f"--split-mode {row}" if float(value) > 1 else "", {}
    flag = known.flags.get(knob, f"--{knob.replace('_', '-')} {{}}")
    if isinstance(flag, str):
        return flag.format(shlex.quote(_text(value))), {}
    if str(value) not in flag:
        raise UnknownName(f"{knob} of {engine}", str(value), flag)
    return flag[str(value)], {}


def _first_cores(threads: int, knobs: Settings) -> str:
    """The first cores, `threads` for each rank: '0-3|4-7'."""
    ranks = prod(int(knobs.get(name, 1)) for name in ("tp", "pp", "dp"))
    starts = range(0, threads * ranks, threads)
    return "|".join(f"{start}-{start + threads - 1}" if threads > 1 else str(start) for start in starts)


def _text(value: Setting) -> str:
    """A value as text; integers without a decimal point ('8', not '8.0')."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _assigned(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={shlex.quote(value)}" for name, value in variables.items()]


def filled_in(command: str, values: Settings) -> str:
    """A command with its `{knob}` placeholders filled in; `${NAME}` is left to the shell."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise UnknownName("knob in the command", match[1], values)
        return shlex.quote(_text(values[match[1]]))

    return re.sub(r"(?<!\$)\{(\w+)\}", value, command)
