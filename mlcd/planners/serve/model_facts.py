"""Facts about a model before any trial: its size, its family, and profiles of its operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.llm.nouns import Prompts


@dataclass(frozen=True, slots=True)
class Operator:
    """All calls of one kind of operator in one forward pass: their time and memory on the device."""

    name: str
    calls: int
    seconds: float
    memory_mb: float = 0.0


@dataclass(frozen=True)
class Profile:
    """One forward pass of a model at a batch size, operator by operator."""

    batch: int
    operators: tuple[Operator, ...]
    precision: str = "fp32"

    @cached_property
    def seconds(self) -> float:
        """Device time of the pass."""
        return sum(operator.seconds for operator in self.operators)

    @cached_property
    def memory_mb(self) -> float:
        """Memory of all operators together."""
        return sum(operator.memory_mb for operator in self.operators)

    @cached_property
    def calls(self) -> int:
        """Operator calls in one pass."""
        return sum(operator.calls for operator in self.operators)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Share of the pass's time, by operator."""
        return {each.name: each.seconds / (self.seconds or 1.0) for each in self.operators}


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a model before any trial.

    `inputs`: the kind of its input ('image224', 'tokens128'), which determines the host's work. `parameters`: in
    billions. `profiles`: forward passes at one or two batch sizes; empty if it was not profiled. `architecture`: the
    sizes of a language model. `prompts`: the request lengths of a recording that has several.
    """

    name: str
    family: str = ""
    inputs: str = ""
    weights_mb: float | None = None
    parameters: float | None = None
    profiles: tuple[Profile, ...] = ()
    architecture: Architecture | None = None
    prompts: Prompts | None = None

    @property
    def title(self) -> str:
        """The name; with request lengths if a recording has several: 'Llama-3.1-8B@1024/128'."""
        return self.name if self.prompts is None else workload_title(self.name, self.prompts)


def workload_title(model: str, prompts: Prompts) -> str:
    """The model's name with the input and output tokens of its requests."""
    return f"{model}@{prompts.input_tokens}/{prompts.output_tokens}"
