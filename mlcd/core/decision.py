"""What a search ends with: a configuration with its evidence, or an honest 'cannot be certified'."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.configuration import Configuration
from mlcd.core.payload import Easing, Plan


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the final run should take, and the most that it is counted on to take. Probes are not in it.

    `seconds`: without waiting for spot machines. `usd`: wherever it is rented; the most is always counted on demand.
    `fallback`: where the job moves if the run is too slow; the worst is then a trial, and all of the job there.
    `on_spot`: how much of the work is expected to be done on spot machines.
    """

    seconds: float
    usd: float
    worst_seconds: float
    worst_usd: float
    fallback: Configuration | None = None
    on_spot: float = 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model expects the rest of the job to take on a configuration, and between which ends nine times of ten.

    `relative`: the numbers only compare configurations; no time is claimed, and no interval. `on_boundary`: nothing
    else is expected to be both faster and cheaper. `work_share`: of a relative one, how much of the job's work the
    target takes here if it takes all of it with the batch that needs the most.
    """

    configuration: Configuration
    seconds: float
    usd: float
    low_s: float
    high_s: float
    measured: bool = False
    relative: bool = False
    on_boundary: bool = False
    knee: bool = False
    work_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A limit that would have made the job possible: the new total, in dollars or in seconds.

    `easing`: what else could be asked less of, as its planner says. `max_probe_usd`: no promise, but what
    trying the configuration takes; under the `max_probe` of the search it was not allowed. `confidence`: how sure the
    configuration is within the limits as they are, if that is enough.
    """

    budget_usd: float | None = None
    deadline_s: float | None = None
    configuration: Configuration | None = None
    easing: Easing | None = None
    max_probe_usd: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a search.

    With a configuration: `certified` says that probes and the final run together stay within the limits, with the
    probability `confidence`; None where there is no limit, or where none was stated. Without one, `binding` names the
    constraint that nothing measured can meet, and `relaxations` what would have been enough, the smallest step first.
    `curve`: what a model expects each configuration to take. `done`: the job reached its target while it was being
    probed, there, and nothing is left to run. `plan`: what was decided beyond a configuration. `memory`: the largest
    share of its memory that a probe of it used, where that is known.
    """

    configuration: Configuration | None
    because: str
    certified: bool = False
    forecast: Forecast | None = None
    binding: str = ""
    relaxations: tuple[Relaxation, ...] = ()
    curve: tuple[Prediction, ...] = ()
    done: bool = False
    plan: Plan | None = None
    confidence: float | None = None
    memory: float | None = None
