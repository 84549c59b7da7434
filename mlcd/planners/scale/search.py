"""Scavenger's three ways to search workers x batch size: full, partial, none.

Tyagi and Sharma (Scavenger, 2023), sections III-B and III-E. Differences from the paper: docs/methods/scavenger.md.
Every probe is progress: the job continues from its checkpoint, on other workers and with another batch.

Full      measures every configuration, from the smallest to the largest; the model only smooths the measurements.
Partial   measures a few extreme configurations, and predicts the rest with the model. It then measures the predicted
          best one and predicts again, at most a few times.
None      measures nothing: a stored model ranks the configurations, and predicts no time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Prediction
from mlcd.core.guarantee import certifiable
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.planners.modeling.tradeoff import choose, first_probes, verified_choice
from mlcd.planners.scale.feasibility import (
    fits_memory,
    largest_local_batch_to_try,
    local_batch,
    machine_of,
    may_meet_deadline,
)
from mlcd.planners.scale.job_model import JobModel, fit_job_model, launch_at_target, predict_all
from mlcd.planners.scale.nouns import MeasureNoise, Mode, Noise, batch_of

MOST_PROBES = 6
"""Of a partial search with one machine type."""
PROBES_PER_OTHER_TYPE = 2
"""More probes for each further machine type."""
NOTHING_RAN = "nothing that was probed could run the job"
NOTHING_PROBED = "the limits do not allow a single probe"


@dataclass(frozen=True)
class ScaleSearch:
    """Probes while the job trains, and chooses the configuration for the rest of it."""

    mode: Mode = Mode.PARTIAL

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next probe; or the choice, with a prediction for every configuration."""
        if self.mode is Mode.NONE or launch_at_target(job, history) is not None:
            return self.answer(job, space, history)
        fitting = [c for c in space.configurations if fits_memory(job, c, history)]
        if not fitting:
            return Finish(NOTHING_RAN if history.measurements else NOTHING_PROBED)
        planned = fitting if self.mode is Mode.FULL else _probe_plan(job, fitting, history)
        types = {machine_of(c) for c in space.configurations}
        may_probe = self.mode is Mode.FULL or len(history.good) < MOST_PROBES + PROBES_PER_OTHER_TYPE * (len(types) - 1)
        tried = history.tried
        left = next((c for c in planned if c not in tried and may_meet_deadline(job, c, history)), None)
        if left is not None and may_probe:
            return _probe(job, space, history, left, self._why(left, planned))
        answer = self.answer(job, space, history)
        best = _choice(job, history, answer.curve) if answer.curve else None
        if best is not None and best not in tried and may_probe:
            return _probe(job, space, history, best, "the predicted best: measured before it is trusted")
        return answer

    def answer(self, job: Job, space: Space, history: History) -> Finish:
        """The choice from what is measured so far."""
        if (done := launch_at_target(job, history)) is not None:
            because = f"{job.target} was reached while probing: {done.metric:.4g}"
            return Finish(because, done.configuration, done=True)
        if self.mode is Mode.NONE:
            return _ranked(job, space, history)
        model = fit_job_model(job, space, history)
        expected = predict_all(job, space, history, model) if model is not None and history.good else ()
        if model is None or not expected:
            return Finish(NOTHING_RAN if history.measurements else NOTHING_PROBED)
        return _finish(job, space, history, expected, model)

    def _why(self, configuration: Configuration, planned: Sequence[Configuration]) -> str:
        number = planned.index(configuration) + 1
        if number == 1:
            return "the smallest, until its gradient noise is known"
        kind = "configuration" if self.mode is Mode.FULL else "extreme configuration"
        return f"{kind} {number} of {len(planned)}"


def _probe_plan(job: Job, fitting: Sequence[Configuration], history: History) -> list[Configuration]:
    """What a partial search measures first: of the cheapest type the few configurations that are most informative about
    the others, the smallest first; of every other type one, similar to the largest of these.

    One is enough there: types differ more in speed than in how they scale.
    """
    by_price = sorted(fitting, key=lambda c: c.usd_per_hour / c.workers)
    machines = list(dict.fromkeys(machine_of(c) for c in by_price))
    mine = [c for c in fitting if machine_of(c) == machines[0]]
    largest = largest_local_batch_to_try(job, mine, history)
    mine = [c for c in mine if local_batch(job, c) <= largest] or mine
    nodes, local = np.array([float(c.nodes) for c in mine]), np.array([local_batch(job, c) for c in mine])
    extremes = [mine[i] for i in first_probes(nodes, local)]
    others = [_most_similar([c for c in fitting if machine_of(c) == machine], extremes[-1]) for machine in machines[1:]]
    return [*extremes, *others]


def _most_similar(candidates: Sequence[Configuration], other: Configuration) -> Configuration:
    """The candidate that is most similar to a configuration of another type."""

    def distance(c: Configuration) -> tuple[int, int, int]:
        return abs(c.workers - other.workers), abs((batch_of(c) or 0) - (batch_of(other) or 0)), c.nodes

    return min(candidates, key=distance)


def _probe(job: Job, space: Space, history: History, configuration: Configuration, because: str) -> Probe:
    """A probe. It measures gradient noise if the space has several batches and noise is known from fewer than two."""
    batches = {batch_of(c) for c in space.configurations}
    stable = [m for m in history.measurements if isinstance(m.evidence, Noise) and m.evidence.stable]
    known = {batch_of(m.configuration) for m in stable}
    wanted = len(batches) > 1 and (not known or (len(known) == 1 and batch_of(configuration) not in known))
    return Probe(configuration, because, work=MeasureNoise() if wanted else None)


def _choice(job: Job, history: History, expected: Sequence[Prediction]) -> Configuration | None:
    """The best configuration that is predicted to keep the limits.

    If none is, the best of all, which the guarantee then refuses.
    """
    seconds, usd = np.array([p.seconds for p in expected]), np.array([p.usd for p in expected])
    goal = job.goal
    left_s, left_usd = goal.most_s - history.elapsed_s, goal.most_usd - history.spent_usd
    if expected[0].relative:  # a ranking has no times to compare with a limit
        left_s = left_usd = np.inf
    best = choose(seconds, usd, goal.objective, left_s, left_usd)
    if best is None:
        best = choose(seconds, usd, goal.objective)
    if best is None or (expected[best].configuration in history.tried and not expected[best].measured):
        return _nearest_measured(job, expected)  # its probe was refused, or failed
    return expected[best].configuration


def _nearest_measured(
    job: Job, expected: Sequence[Prediction], among: Collection[Configuration] | None = None
) -> Configuration | None:
    """The measured configuration nearest to the best one; None if no measured one is predicted to reach the target."""
    measured = [i for i, p in enumerate(expected) if p.measured and (among is None or p.configuration in among)]
    if not measured:
        return None
    seconds, usd = np.array([p.seconds for p in expected]), np.array([p.usd for p in expected])
    return expected[verified_choice(seconds, usd, job.goal.objective, measured)].configuration


def _finish(job: Job, space: Space, history: History, expected: tuple[Prediction, ...], model: JobModel) -> Finish:
    """The best configuration if it can be certified, else the certifiable one nearest to it.

    Nearest by these predictions, which account for the batch.
    """
    measured = sum(p.measured for p in expected)
    because = f"{measured} of {len(expected)} configurations measured; {model.epochs.evidence}"
    best = _choice(job, history, expected)
    certified = {m.configuration for m in certifiable(job, space, history)}
    chosen = best if best in certified else _nearest_measured(job, expected, certified)
    return Finish(because, chosen, expected)


def _ranked(job: Job, space: Space, history: History) -> Finish:
    """The best by a stored model alone, which ranks configurations and predicts no time."""
    model = fit_job_model(job, space, history)
    if model is None:
        return Finish("no stored model to rank configurations with; probe a few: --search partial")
    expected = tuple(replace(p, relative=True) for p in predict_all(job, space, history, model))
    if not expected:
        return Finish("nothing that was tried fits memory")
    best = _choice(job, history, expected)
    return Finish("ranked by a stored model; nothing was measured", best, expected, unproven=True)
