"""The result of a search: a certified configuration with its forecast, or why nothing can be certified."""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.configuration import Configuration
from mlcd.core.payload import Easing, Plan


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected and worst-case time and cost of the final run, without the probes.

    `seconds`: without waiting for spot machines. `usd`: on the cheapest market; `worst_usd`: always on demand.
    `fallback`: where the job moves if the run is too slow; the worst case is then a trial here and the whole job there.
    `on_spot`: the share of the work expected on spot machines.
    """

    seconds: float
    usd: float
    worst_seconds: float
    worst_usd: float
    fallback: Configuration | None = None
    on_spot: float = 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's prediction for the rest of the job on a configuration, with a 90 % interval from `low_s` to `high_s`.

    `relative`: the numbers only rank configurations; there is no interval. `on_boundary`: Pareto-optimal in time and
    cost. `work_share`: of a relative prediction, the share of the job's work that reaches the target here, if the batch
    size that needs most takes all of it.
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
    """One way to make the job possible: a higher limit (the new total), or a lower requirement.

    `easing`: a requirement that could be relaxed, in the planner's terms. `max_probe_usd`: what a probe of the
    configuration costs, if `max_probe` forbade it; trying it promises nothing. `confidence`: the lower confidence with
    which the configuration keeps the limits as they are.
    """

    budget_usd: float | None = None
    deadline_s: float | None = None
    configuration: Configuration | None = None
    easing: Easing | None = None
    max_probe_usd: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a search.

    With a configuration: `certified` says that probes and final run together stay within the limits, with probability
    `confidence` (None without limits, or if none was stated). Without one: `binding` names the constraint that nothing
    measured can meet, and `relaxations` what would have been enough, the smallest change first. `curve`: a model's
    prediction for each configuration. `done`: the job reached its target during a probe; nothing is left to run.
    `plan`: what was decided besides a configuration. `memory`: the largest share of its memory that a probe of the
    configuration used, if known.
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
