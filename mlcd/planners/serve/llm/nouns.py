"""A language model to be served: its sizes, the engine that serves it, and the requests that it is tested with."""

from __future__ import annotations

from dataclasses import dataclass

SWEEP = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Requests at once that a trial tries in turn, unless somebody says others."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes of a language model, as its `config.json` tells them.

    `params_b`, `active_b`: billions of parameters, and of those that one token passes through. `dense_hidden`: width
    of a feed-forward layer that is not made of experts; `expert_hidden`: of one expert. `full_layers` keep keys and
    values of all tokens, the others of the last `window` (0: a constant state, or none). `latent`: numbers that a token
    and layer keep where attention is latent (DeepSeek's MLA), instead of keys and values. `context`: the most tokens.
    `expert_bits`: of an expert's weight, where the model is published so whatever the precision (gpt-oss); else 0.
    """

    params_b: float
    active_b: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int = 0
    dense_hidden: int = 0
    dense_layers: int = 0
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_hidden: int = 0
    full_layers: int = 0
    window: int = 0
    latent: int = 0
    expert_bits: float = 0.0


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
    command and no name, it runs already. `version`: as the engine told it.
    """

    name: str = ""
    command: str = ""
    url: str = ""
    version: str = ""


@dataclass(frozen=True)
class LanguageModel:
    """What is particular about serving a language model. `sweep`: requests at once that a trial tries in turn."""

    engine: Engine
    architecture: Architecture | None = None
    prompts: Prompts = Prompts()
    sweep: tuple[int, ...] = SWEEP


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
