"""The types of language-model serving: engine, prompts, streamed answers, and an engine's own metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlcd.planners.modeling.architecture import Architecture

SWEEP = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The default concurrencies of a trial, tried in turn."""
STARTUP_S, STEP_S = 300.0, 20.0
"""Default time limits: until an engine answers, and for each step of the sweep."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The requests of a load test.

    `spread`: relative standard deviation of both lengths; 0: all are equal. `shared_prefix`: tokens at the beginning
    that all prompts share. `file`: the user's own prompts, as JSON Lines; they replace the lengths. `chat`: whether to
    use /v1/chat/completions or /v1/completions. `tokenizer`: a folder or `tokenizer.json` that counts the tokens of a
    prompt; empty: the server's counts are used.
    """

    input_tokens: int = 512
    output_tokens: int = 128
    spread: float = 0.0
    shared_prefix: int = 0
    file: str = ""
    chat: bool = True
    tokenizer: str = ""


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine that serves a language model.

    `name`: vllm, sglang, trtllm, llama.cpp; empty if only a command or an address is given. `command`: starts it, with
    `{knob}` for a knob's value; empty for the default command of `name`. `url`: its address; without name and command,
    the engine is already running there. `version`: as installed. `startup_s`: time limit until it answers, including
    download, load and compilation.
    """

    name: str = ""
    command: str = ""
    url: str = ""
    version: str = ""
    startup_s: float = STARTUP_S

    @property
    def runs_already(self) -> bool:
        """Whether the engine is already running, so that MLCD neither starts nor stops it."""
        return not self.name and not self.command


@dataclass(frozen=True)
class LanguageModel:
    """The part of a serving task that only language models have. `sweep`: the concurrencies of a trial, in turn."""

    engine: Engine
    architecture: Architecture | None = None
    prompts: Prompts = Prompts()
    sweep: tuple[int, ...] = SWEEP


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """An engine's own metrics; None for those that it lacks.

    `running`, `waiting`: requests. `kv_cache`: the share of the KV cache in use. `preemptions`: requests so far that
    were preempted because the KV cache was full.
    """

    running: float | None = None
    waiting: float | None = None
    kv_cache: float | None = None
    preemptions: float | None = None

    @staticmethod
    def of_all(loads: Sequence[EngineLoad | None]) -> EngineLoad | None:
        """The maximum of each metric over several readings, and the preemptions between the first and the last."""
        readings = [load for load in loads if load is not None]
        if not readings:
            return None

        def most(values: Iterable[float | None]) -> float | None:
            return max((value for value in values if value is not None), default=None)

        counts = [load.preemptions for load in readings if load.preemptions is not None]
        return EngineLoad(
            most(load.running for load in readings),
            most(load.waiting for load in readings),
            most(load.kv_cache for load in readings),
            counts[-1] - counts[0] if counts else None,
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """One streamed answer; times are in seconds from when its request was due.

    `tokens`, `input_tokens`: of the answer and of the prompt, by the server's count. `gaps_s`: between consecutive
    chunks, which may hold several tokens.
    """

    ttft_s: float
    latency_s: float
    tokens: int
    gaps_s: tuple[float, ...] = ()
    input_tokens: int = 0

    @property
    def tpot_s(self) -> float | None:
        """Mean time per token after the first; None if the answer has only one token."""
        return (self.latency_s - self.ttft_s) / (self.tokens - 1) if self.tokens > 1 else None
