"""What is known of a model before any trial: its sizes, and passes of it operator by operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.llm.nouns import Prompts


@dataclass(frozen=True, slots=True)
class Operator:
    """All calls of one kind of operator in one pass of a model: their time and memory on the device."""

    name: str
    calls: int
    seconds: float
    memory_mb: float = 0.0


@dataclass(frozen=True)
class Profile:
    """One pass of a model at a batch, operator by operator."""

    batch: int
    operators: tuple[Operator, ...]
    precision: str = "fp32"

    @cached_property
    def seconds(self) -> float:
        """On the device, all operators together."""
        return sum(operator.seconds for operator in self.operators)

    @cached_property
    def memory_mb(self) -> float:
        """That the operators took, all together."""
        return sum(operator.memory_mb for operator in self.operators)

    @cached_property
    def calls(self) -> int:
        """How many operators one pass starts."""
        return sum(operator.calls for operator in self.operators)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Of the time, by operator."""
        return {each.name: each.seconds / (self.seconds or 1.0) for each in self.operators}


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model before any trial.

    `inputs`: the kind of its input ('image224', 'tokens128'), by which a host's work is known. `parameters` are
    billions, as people name language models. `profiles`: passes of it, at one or two batches; none if nobody looked.
    `architecture`: the sizes of a language model. `prompts`: the requests of a recording, which may have several kinds.
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
        """The name, with the lengths of its requests where a recording has several: 'Llama-3.1-8B@1024/128'."""
        return self.name if self.prompts is None else workload_title(self.name, self.prompts)


def workload_title(model: str, prompts: Prompts) -> str:
    """A model and the tokens in and out of its requests."""
    return f"{model}@{prompts.input_tokens}/{prompts.output_tokens}"
