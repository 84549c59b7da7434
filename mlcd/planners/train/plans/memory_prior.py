"""What is known of memory before anything was tried: levels, and how sure they are.

A level is the logarithm of a factor that one part of `needed_gb` is multiplied by; of `update`, which is between none
and all, the logarithm of the odds. Levels are sums:

    level of a job = level of all + level of the kernels that its plans name + what is the job's own

    state     weights, gradients, optimizer      update   copies that the optimizer makes
    stream    inputs of checkpointed layers      saved    activations that wait
    plain     feed-forward layers without a gate, beside saved
    logits    and what their loss makes of them  layer    what is in work
    masters   weights kept in fp32 although all was asked to be in 16 bits: some frameworks do with zero3
    slack     what is reserved and cannot be used when memory runs out, in proportion to what comes and goes
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
    """Learned by `learn_memory`. Of each level, in the order of LEVELS.

    `middle`, `error`: of all jobs; `kernels`, `kernels_error`: of those with kernels of that name, in place of them;
    `unlike`: how much kernels differ; `own`: how much jobs do. `measured`: 1 s.e. of what is left, of the log;
    `busy`: likewise, for the share of need that comes and goes. `source`: what it was learned from.
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
        """Middle and variance of the levels of a new job whose plans name these kernels, each (levels,)."""
        own = np.array(self.own) ** 2
        if kernels in self.kernels:
            return np.array(self.kernels[kernels]), own + np.array(self.kernels_error[kernels]) ** 2
        return np.array(self.middle), own + np.array(self.error) ** 2 + np.array(self.unlike) ** 2

    def text(self) -> str:
        """As it is kept in a file."""
        written = json.dumps(asdict(self), indent=1)
        return re.sub(r"\[[^]]*\]", lambda row: " ".join(row[0].split()), written) + "\n"  # a row of levels a line

    @staticmethod
    def read(text: str) -> MemoryPrior:
        """From the text of a file."""
        found = json.loads(text)
        lists = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
        named = {key: {each: tuple(of) for each, of in found[key].items()} for key in ("kernels", "kernels_error")}
        return MemoryPrior(**{**found, **lists, **named})


@cache
def shipped_memory() -> MemoryPrior:
    """The one that MLCD brings."""
    return MemoryPrior.read((resources.files(__package__) / FILE).read_text(encoding="utf-8"))
