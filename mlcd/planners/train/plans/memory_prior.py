"""The prior of memory: mean and variance of each level.

A level is the log of a factor on one part of `needed_gb`; for `update`, a share between 0 and 1, it is the log odds.
Levels are sums:

    level of a job = level of all + level of the kernels that its plans name + the job's own

    state     weights, gradients, optimizer      update   copies made by the optimizer
    stream    inputs of checkpointed layers      saved    activations stored for the backward pass
    plain     feed-forward layers without a gate, in addition to saved
    logits    logits and their loss              layer    the layer being computed
    masters   weights kept in fp32 although 16 bits were requested, as some frameworks do with zero3
    slack     memory that is reserved but unusable (fragmented) when memory runs out, relative to the temporary share
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources

import numpy as np

from mlcd.core.configuration import Floats

LEVELS = ("state", "update", "stream", "saved", "plain", "logits", "layer", "masters", "slack")
FILE = "memory_prior.json"


@dataclass(frozen=True)
class MemoryPrior:
    """Learned by `learn_memory`. Each tuple is in the order of LEVELS.

    `middle`, `error`: mean and standard error for all jobs; `kernels`, `kernels_error`: the same by name of kernels,
    used instead. `unlike`: standard deviation between kernels; `own`: between jobs. `measured`: standard deviation of
    the residual log; `busy`: the same per unit of temporary share. `source`: what it was learned from.
    """

    middle: tuple[float, ...]
    error: tuple[float, ...]
    kernels: Mapping[str, tuple[float, ...]]
    kernels_error: Mapping[str, tuple[float, ...]]
    unlike: tuple[float, ...]
    own: tuple[float, ...]
    measured: float
    busy: float
    source: str = ""

    def of(self, kernels: str) -> tuple[Floats, Floats]:
        """Mean and variance of the levels of a new job whose plans name these kernels, each (levels,)."""
        own = np.array(self.own) ** 2
        if kernels in self.kernels:
            return np.array(self.kernels[kernels]), own + np.array(self.kernels_error[kernels]) ** 2
        return np.array(self.middle), own + np.array(self.error) ** 2 + np.array(self.unlike) ** 2

    def text(self) -> str:
        """The text of its file."""
        written = json.dumps(asdict(self), indent=1)
        return re.sub(r"\[[^]]*\]", lambda row: " ".join(row[0].split()), written) + "\n"  # a row of levels a line

    @staticmethod
    def read(text: str) -> MemoryPrior:
        """Read the text of a file."""
        found = json.loads(text)
        lists = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
        named = {key: {each: tuple(of) for each, of in found[key].items()} for key in ("kernels", "kernels_error")}
        return MemoryPrior(**{**found, **lists, **named})


@cache
def shipped_memory() -> MemoryPrior:
    """The prior that ships with MLCD."""
    return MemoryPrior.read((resources.files(__package__) / FILE).read_text(encoding="utf-8"))
