"""The command line of an engine with its knobs set: trials start it, and exports write it, so both run the same.

A knob becomes a flag or a variable of the environment. One that has neither (the precision of a checkpoint, the GPU)
is in `notes`, with what to do.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from mlcd.core.errors import UnknownName

Setting = str | int | float
Settings = Mapping[str, Setting]

WITH_FLAGS = ("vllm", "sglang", "trtllm", "llama.cpp")
"""The engines whose flags are known here."""
GIB = 1 << 30


@dataclass(frozen=True)
class CommandLine:
    """What starts an engine. `where`: the flag or variable that sets each knob; `notes`: of those that none sets."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As a shell reads it."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join((*variables, shlex.join(self.arguments)))


@dataclass(frozen=True)
class _Flags:
    """How an engine spells its knobs: `numbers` follow a flag, `words` are flags themselves; `notes`: of the others."""

    start: str
    numbers: Mapping[str, str]
    words: Mapping[str, Mapping[Setting, str]]
    notes: Mapping[str, str] = field(default_factory=dict)


NOTES = {
    "precision": "is of the checkpoint: serve one that is stored so; the engine reads it from its config.json",
    "gpu": "is the machine's: start the engine on such a GPU",
    "gpus": "is the machine's: start the engine on that many GPUs",
    "instance": "is the machine's: start the engine on that type",
    "concurrency": "is of the load: let so many requests in at once",
    "users": "is of the load: let so many requests in at once",
}
DTYPES: Mapping[Setting, str] = {
    "bf16": "--dtype bfloat16",
    "fp16": "--dtype float16",
    "fp32": "--dtype float32",
    "fp8": "--quantization fp8",
    "auto": "",
}
_ENGINES: Mapping[str, _Flags] = {
    "vllm": _Flags(
        "vllm serve {model} --served-model-name {name} --host {host} --port {port}",
        {
            "tp": "--tensor-parallel-size",
            "pp": "--pipeline-parallel-size",
            "dp": "--data-parallel-size",
            "batched_tokens": "--max-num-batched-tokens",
            "sequences": "--max-num-seqs",
            "context": "--max-model-len",
        },
        {
            "precision": DTYPES,
            "kv_cache": {"auto": "", "fp8": "--kv-cache-dtype fp8"},
            "eager": {"eager": "--enforce-eager", "compiled": ""},
        },
    ),
    "sglang": _Flags(
        "python -m sglang.launch_server --model-path {model} --served-model-name {name} --host {host} --port {port}"
        " --enable-metrics",
        {
            "tp": "--tp-size",
            "pp": "--pp-size",
            "dp": "--dp-size",
            "ep": "--ep-size",
            "batched_tokens": "--chunked-prefill-size",
            "sequences": "--max-running-requests",
            "context": "--context-length",
        },
        {
            "precision": DTYPES,
            "kv_cache": {"auto": "", "fp8": "--kv-cache-dtype fp8_e4m3"},
            "eager": {"eager": "--disable-cuda-graph", "compiled": ""},
        },
    ),
    "trtllm": _Flags(
        "trtllm-serve {model} --host {host} --port {port}",
        {
            "tp": "--tp_size",
            "pp": "--pp_size",
            "ep": "--ep_size",
            "batched_tokens": "--max_num_tokens",
            "sequences": "--max_batch_size",
            "context": "--max_seq_len",
        },
        {"precision": {"auto": ""}, "kv_cache": {"auto": ""}},
        {
            "kv_cache": "has no flag: write kv_cache_config: {dtype: fp8} into a file, and add --config FILE",
            "dp": "has no flag: write enable_attention_dp: true into a file, and add --config FILE",
        },
    ),
    "llama.cpp": _Flags(
        "llama-server --model {model} --alias {name} --host {host} --port {port} --metrics",
        {"batched_tokens": "--batch-size", "sequences": "--parallel", "threads": "--threads"},
        {"kv_cache": {"auto": "", "q8_0": "--cache-type-k q8_0 --cache-type-v q8_0"}, "precision": {}},
        {"precision": "is of the GGUF file: serve one that is stored so"},
    ),
}


def command_line(
    engine: str, model: str, knobs: Settings, *, name: str = "", host: str = "0.0.0.0", port: int = 8000
) -> CommandLine:
    """What starts a known engine with these knobs. `name`: the model's, for its clients; the model itself where empty.

    `UnknownName` of an engine that has no flags here.
    """
    if engine not in _ENGINES:
        raise UnknownName("engine", engine, WITH_FLAGS)
    flags = _ENGINES[engine]
    arguments = [part.format(model=model, name=name or model, host=host, port=port) for part in flags.start.split()]
    environment, where, notes = dict[str, str](), dict[str, str](), dict[str, str]()
    for knob, value in knobs.items():
        if (special := _special(engine, knob, knobs)) is not None:
            added, variables = special
        elif knob in flags.numbers:
            added, variables = f"{flags.numbers[knob]} {_text(value)}", {}
        elif value in flags.words.get(knob, {}):
            added, variables = flags.words[knob][value], {}
        else:
            notes[knob] = flags.notes.get(knob) or NOTES.get(
                knob, f"has no flag of {engine} that MLCD knows: set it yourself"
            )
            continue
        arguments += added.split()
        environment |= variables
        where[knob] = (
            added or ", ".join(f"{key}={shlex.quote(text)}" for key, text in variables.items()) or "the default"
        )
    return CommandLine(tuple(arguments), environment, where, notes)


def _special(engine: str, knob: str, knobs: Settings) -> tuple[str, dict[str, str]] | None:
    """The flags and variables of a knob that is no plain number or word; None of one that is."""
    value = knobs[knob]
    match engine, knob:
        case "vllm", "ep":  # its size is that of tensor and data parallelism together
            return "--enable-expert-parallel" if float(value) > 1 else "", {}
        case "vllm", "threads":
            return "", {"VLLM_CPU_OMP_THREADS_BIND": _cores(int(value), _ranks(knobs))}
        case "vllm", "kv_cache_gb":  # its variable takes whole GiB alone
            if float(value).is_integer():
                return "", {"VLLM_CPU_KVCACHE_SPACE": str(int(value))}
            return f"--kv-cache-memory-bytes {round(float(value) * GIB)}", {}
        case "llama.cpp", "context":  # of all sequences together
            return f"--ctx-size {int(value) * int(knobs.get('sequences', 1))}", {}
        case "llama.cpp", "tp":
            return "--split-mode row" if float(value) > 1 else "--split-mode none", {}
        case "llama.cpp", "pp":
            return "--split-mode layer" if float(value) > 1 else "", {}
    return None


def _text(value: Setting) -> str:
    """8.0 as engines read it: 8."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _ranks(knobs: Settings) -> int:
    return prod(int(knobs.get(name, 1)) for name in ("tp", "pp", "dp"))


def _cores(threads: int, ranks: int) -> str:
    """The first cores, so many for each rank: '0-3|4-7'."""
    starts = range(0, threads * ranks, threads)
    return "|".join(f"{start}-{start + threads - 1}" if threads > 1 else str(start) for start in starts)


def filled_in(command: str, values: Settings) -> str:
    """A command of the user's with `{knob}` replaced by the knob's value; `UnknownName` where there is no such knob."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise UnknownName("knob in the command", match[1], values)
        return shlex.quote(str(values[match[1]]))

    return re.sub(r"(?<!\$)\{(\w+)\}", value, command)  # ${NAME} is a shell variable


def named_in(command: str) -> set[str]:
    """The knobs that a command of the user's names."""
    return set(re.findall(r"(?<!\$)\{(\w+)\}", command))
