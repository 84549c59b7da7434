"""A language model to be served: its sizes, the engine that serves it, and the requests that it is tested with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlcd.planners.modeling.architecture import Architecture

SWEEP = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Requests at once that a trial tries in turn, unless somebody says others."""
STARTUP_S, STEP_S = 300.0, 20.0
"""How long an engine may take until it answers; and, of the sweep, each number of requests at once."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the requests of a load test look like.

    `spread`: the relative standard deviation of both lengths over the requests; 0: all are equally long.
    `shared_prefix`: tokens at their beginning that all requests have in common. `file`: the user's own prompts, as JSON
    Lines; they replace the lengths. `chat`: whether they go to /v1/chat/completions or to /v1/completions.
    `tokenizer`: a folder or `tokenizer.json` that counts the tokens of a prompt; empty: the server's count tells them.
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
    """What serves a language model.

    `name`: vllm, sglang, trtllm, llama.cpp; empty where only a command or an address is known. `command`: what starts
    it, with `{knob}` for a knob's value; empty where the name says it. `url`: where it answers; of one that has no
    command and no name, it runs already. `version`: as the engine told it. `startup_s`: the longest that it may take
    until it answers: to download the model, to load it and to compile.
    """

    name: str = ""
    command: str = ""
    url: str = ""
    version: str = ""
    startup_s: float = STARTUP_S

    @property
    def runs_already(self) -> bool:
        """Whether it is asked at its address, and neither started nor ended."""
        return not self.name and not self.command


@dataclass(frozen=True)
class LanguageModel:
    """What is particular about serving a language model. `sweep`: requests at once that a trial tries in turn."""

    engine: Engine
    architecture: Architecture | None = None
    prompts: Prompts = Prompts()
    sweep: tuple[int, ...] = SWEEP


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What an engine's own metrics tell; None where it has no such metric.

    `running`, `waiting`: requests. `kv_cache`: the share of its cache of keys and values that is in use. `preemptions`:
    requests so far that had to be put back because that cache was full.
    """

    running: float | None = None
    waiting: float | None = None
    kv_cache: float | None = None
    preemptions: float | None = None

    @staticmethod
    def of_all(loads: Sequence[EngineLoad | None]) -> EngineLoad | None:
        """The most of each over a while, and the preemptions in it; None where the engine told nothing."""
        told = [load for load in loads if load is not None]
        if not told:
            return None

        def most(values: Iterable[float | None]) -> float | None:
            return max((value for value in values if value is not None), default=None)

        counts = [load.preemptions for load in told if load.preemptions is not None]
        return EngineLoad(
            most(load.running for load in told),
            most(load.waiting for load in told),
            most(load.kv_cache for load in told),
            counts[-1] - counts[0] if counts else None,
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """One streamed answer, in seconds from when its request was due.

    `tokens`: that the answer has, by the server's own count. `gaps_s`: between two pieces of it as they came, which may
    hold several tokens. `input_tokens`: of its prompt, by the server's count.
    """

    ttft_s: float
    latency_s: float
    tokens: int
    gaps_s: tuple[float, ...] = ()
    input_tokens: int = 0

    @property
    def tpot_s(self) -> float | None:
        """The mean time of each token after the first; None of an answer that has but one."""
        return (self.latency_s - self.ttft_s) / (self.tokens - 1) if self.tokens > 1 else None
