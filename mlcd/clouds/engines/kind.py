"""What is particular about an engine beside its command line (`planners/serve/llm/flags.py`): what has to be installed,
and how its metrics are called. Beside this file is one for each engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlcd.planners.serve.llm.nouns import EngineLoad


@dataclass(frozen=True)
class EngineKind:
    """An engine by name.

    `program`: that has to be installed, of the Python package `package`; `install`: how. `variables`: of its
    environment, always set. `gauges`: what its metrics at /metrics are called, for each that `EngineLoad` has.
    """

    name: str
    program: str
    package: str
    install: str
    variables: Mapping[str, str] = field(default_factory=dict)
    gauges: Mapping[str, str] = field(default_factory=dict)

    def load(self, metrics: Mapping[str, Sequence[float]]) -> EngineLoad:
        """What its metrics tell of the moment; None for those that it lacks. Of replicas the sum, or the fullest."""
        told = {each: metrics[name] for each, name in self.gauges.items() if name in metrics}
        return EngineLoad(**{each: max(of) if each == "kv_cache" else sum(of) for each, of in told.items()})
