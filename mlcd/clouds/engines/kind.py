"""The properties of an engine other than its command line (`planners/serve/llm/flags.py`): what must be installed, and
the names of its metrics. Each engine has a file in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlcd.planners.serve.llm.nouns import EngineLoad


@dataclass(frozen=True)
class EngineKind:
    """An engine.

    `program`: the executable, from the Python package `package`; `install`: how to install it. `variables`: environment
    variables that are always set. `gauges`: the metric at /metrics for each field of `EngineLoad`.
    """

    name: str
    program: str
    package: str
    install: str
    variables: Mapping[str, str] = field(default_factory=dict)
    gauges: Mapping[str, str] = field(default_factory=dict)

    def load(self, metrics: Mapping[str, Sequence[float]]) -> EngineLoad:
        """The current load from its metrics: the sum over replicas, and the fullest KV cache."""
        found = {field: metrics[name] for field, name in self.gauges.items() if name in metrics}
        return EngineLoad(**{name: max(of) if name == "kv_cache" else sum(of) for name, of in found.items()})
