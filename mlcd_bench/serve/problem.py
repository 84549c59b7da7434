"""Problems of a comparison: a recorded model treated as unseen, under caps, and the oracle's result.

value     answers a second over dollars an hour (or what the goal maximises); 0 if it fails or breaks a cap
optimum   the largest value of any configuration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mlcd.core.configuration import Configuration, Space
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.planners.serve.known_models import Knowledge, SeenModel
from mlcd.planners.serve.nouns import Cap, Figure, ServingTask, service_of
from mlcd.planners.serve.recordings import Recording
from mlcd.planners.serve.service_level import objective_value


@dataclass(frozen=True)
class Caps:
    """Caps on latencies, in ms or as a multiple of each model's best."""

    latency_ms: float | None = None
    latency_factor: float | None = None
    itl_ms: float | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True)
class ServeProblem:
    """A model to serve, treated as unseen. `knowledge` holds only the seen models."""

    recorded: Knowledge
    knowledge: Knowledge
    model: SeenModel
    space: Space
    job: Job

    @property
    def latency_ms(self) -> float | None:
        """The cap on its latency, if there is one."""
        caps = service_of(self.job).caps
        return next((1_000 * cap.at_most_s for cap in caps if cap.figure is Figure.P95), None)

    @property
    def sweeps(self) -> bool:
        """Whether a trial shows a deployment with several numbers of requests at once."""
        return any(cell.levels for cell in self.model.cells.values())

    @cached_property
    def truth(self) -> Mapping[Configuration, float]:
        """The value of every configuration."""
        return {configuration: self._value(configuration) for configuration in self.space.configurations}

    @cached_property
    def optimum(self) -> float:
        """The largest value; 0 if nothing keeps the caps."""
        return max(self.truth.values())

    def _value(self, configuration: Configuration) -> float:
        done = self.recorded.composed(self.model, configuration)
        kept = done.within(service_of(self.job).caps) if done is not None else None
        return objective_value(self.job, configuration.usd_per_hour, kept.rate) if kept is not None else 0.0


def serve_problems(
    folder: Recording,
    unseen: Sequence[str],
    caps: Caps,
    trials: int,
    *,
    one_by_one: bool,
    objective: Objective = Objective.PER_DOLLAR,
) -> list[ServeProblem]:
    """A problem for each unseen model. All of them are hidden together, or each is left out alone."""
    problems = []
    for name in unseen:
        model, space = folder.model(name), folder.space(name)
        hidden = (name,) if one_by_one else unseen
        service = ServingTask(model.facts, _caps(folder, model, space, caps), counted=folder.counted)
        job = Job(name, 0.0, Goal(objective), ask=service, search=Search("grey-box", trials=trials))
        problems.append(ServeProblem(folder.knowledge, folder.knowledge.without(*hidden), model, space, job))
    return problems


def unprofiled(problem: ServeProblem) -> ServeProblem:
    """The same problem without the model's operator profile."""
    service = service_of(problem.job)
    blind = replace(service, model=replace(service.model, profiles=()))
    return replace(problem, job=replace(problem.job, ask=blind))


def _caps(folder: Recording, model: SeenModel, space: Space, limits: Caps) -> tuple[Cap, ...]:
    caps = []
    if limits.latency_ms is not None:
        caps.append(Cap(Figure.P95, limits.latency_ms / 1_000))
    if limits.latency_factor is not None:
        runs = [folder.knowledge.composed(model, configuration) for configuration in space.configurations]
        caps.append(Cap(Figure.P95, limits.latency_factor * min(run.figures[Figure.P95] for run in runs if run)))
    if limits.itl_ms is not None:
        caps.append(Cap(Figure.ITL_P95, limits.itl_ms / 1_000))
    if limits.ttft_ms is not None:
        caps.append(Cap(Figure.TTFT_P95, limits.ttft_ms / 1_000))
    return tuple(caps)
