"""Scavenger's three ways to search workers x batch size: all of it, its ends, or not at all.

Tyagi and Sharma (Scavenger, 2023), sections III-B and III-E. Differences from the paper: docs/methods/scavenger.md.
Every probe is progress: the job goes on from its checkpoint, on other workers and with another batch.

Full      every configuration is measured, from the smallest to the largest; the model only smooths what was seen.
Partial   the ends of each type are measured, the rest is expected from the model. The choice is then measured itself,
          and made again with what that showed, a few times at the most.
None      nothing is measured: a stored model ranks the configurations, and no time is claimed.
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
from mlcd.planners.scale.belief import Belief, believe, curve, reached
from mlcd.planners.scale.nouns import MeasureNoise, Mode, Noise, batch_of
from mlcd.planners.scale.share import fits_memory, largest_worth_trying, local_batch, machine_of, within_reach

MOST_PROBES = 6
"""Of a partial search: the ends of a type, and then choices that are measured and made again."""
MORE_FOR_A_TYPE = 2
NOTHING_RAN = "nothing that was probed could run the job"
NOTHING_PROBED = "the limits do not allow a single probe"


@dataclass(frozen=True)
class ScaleSearch:
    """Probes on the way, and names the configuration for the rest of it."""

    mode: Mode = Mode.PARTIAL

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next probe; or the choice, with what is expected everywhere."""
        if self.mode is Mode.NONE or reached(job, history) is not None:
            return self.answer(job, space, history)
        fitting = [c for c in space.configurations if fits_memory(job, c, history)]
        if not fitting:
            return Finish(NOTHING_RAN if history.measurements else NOTHING_PROBED)
        planned = fitting if self.mode is Mode.FULL else _ends(job, fitting, history)
        types = {machine_of(c) for c in space.configurations}
        may_probe = self.mode is Mode.FULL or len(history.good) < MOST_PROBES + MORE_FOR_A_TYPE * (len(types) - 1)
        tried = history.tried
        left = next((c for c in planned if c not in tried and within_reach(job, c, history)), None)
        if left is not None and may_probe:
            return _probe(job, space, history, left, self._why(left, planned))
        answer = self.answer(job, space, history)
        best = _choice(job, history, answer.curve) if answer.curve else None
        if best is not None and best not in tried and may_probe:
            return _probe(job, space, history, best, "the best that is expected: measured before it is trusted")
        return answer

    def answer(self, job: Job, space: Space, history: History) -> Finish:
        """What is chosen by what is known now, without another probe."""
        if (done := reached(job, history)) is not None:
            because = f"{job.target} was reached while probing: {done.metric:.4g}"
            return Finish(because, done.configuration, done=True)
        if self.mode is Mode.NONE:
            return _ranked(job, space, history)
        belief = believe(job, space, history)
        expected = curve(job, space, history, belief) if belief is not None and history.good else ()
        if belief is None or not expected:
            return Finish(NOTHING_RAN if history.measurements else NOTHING_PROBED)
        return _finish(job, space, history, expected, belief)

    def _why(self, configuration: Configuration, planned: Sequence[Configuration]) -> str:
        number = planned.index(configuration) + 1
        if number == 1:
            return "the smallest, until its gradient noise is known"
        return f"{number} of {len(planned)} {'configurations' if self.mode is Mode.FULL else 'ends'}"


def _ends(job: Job, fitting: Sequence[Configuration], history: History) -> list[Configuration]:
    """Of the cheapest type the few configurations that tell most about the others, the smallest first; of every other
    type one, like the largest of these: types differ in speed more than in how it scales."""
    by_price = sorted(fitting, key=lambda c: c.usd_per_hour / c.workers)
    machines = list(dict.fromkeys(machine_of(c) for c in by_price))
    mine = [c for c in fitting if machine_of(c) == machines[0]]
    largest = largest_worth_trying(job, mine, history)
    mine = [c for c in mine if local_batch(job, c) <= largest] or mine
    nodes, local = np.array([float(c.nodes) for c in mine]), np.array([local_batch(job, c) for c in mine])
    ends = [mine[i] for i in first_probes(nodes, local)]
    others = [_alike([c for c in fitting if machine_of(c) == machine], ends[-1]) for machine in machines[1:]]
    return [*ends, *others]


def _alike(mine: Sequence[Configuration], other: Configuration) -> Configuration:
    """Of one type, what is most like a configuration of another."""

    def unlike(c: Configuration) -> tuple[int, int, int]:
        return abs(c.workers - other.workers), abs((batch_of(c) or 0) - (batch_of(other) or 0)), c.nodes

    return min(mine, key=unlike)


def _probe(job: Job, space: Space, history: History, configuration: Configuration, because: str) -> Probe:
    """A probe. Where batches differ, gradient noise has to be known from two of them."""
    batches = {batch_of(c) for c in space.configurations}
    stable = [m for m in history.measurements if isinstance(m.evidence, Noise) and m.evidence.stable]
    known = {batch_of(m.configuration) for m in stable}
    wanted = len(batches) > 1 and (not known or (len(known) == 1 and batch_of(configuration) not in known))
    return Probe(configuration, because, work=MeasureNoise() if wanted else None)


def _choice(job: Job, history: History, expected: Sequence[Prediction]) -> Configuration | None:
    """The best of what is expected to fit the limits; if nothing is, the best of all, for others to refuse."""
    seconds, usd = np.array([p.seconds for p in expected]), np.array([p.usd for p in expected])
    goal = job.goal
    left_s, left_usd = goal.most_s - history.elapsed_s, goal.most_usd - history.spent_usd
    if expected[0].relative:  # no time is known that a limit could be compared with
        left_s = left_usd = np.inf
    best = choose(seconds, usd, goal.objective, left_s, left_usd)
    if best is None:
        best = choose(seconds, usd, goal.objective)
    if best is None or (expected[best].configuration in history.tried and not expected[best].measured):
        return _nearest_measured(job, expected)  # refused, or out of luck twice
    return expected[best].configuration


def _nearest_measured(
    job: Job, expected: Sequence[Prediction], among: Collection[Configuration] | None = None
) -> Configuration | None:
    """Of what was measured, what comes nearest to the best; None if nothing of it is expected to reach the target."""
    measured = [i for i, p in enumerate(expected) if p.measured and (among is None or p.configuration in among)]
    if not measured:
        return None
    seconds, usd = np.array([p.seconds for p in expected]), np.array([p.usd for p in expected])
    return expected[verified_choice(seconds, usd, job.goal.objective, measured)].configuration


def _finish(job: Job, space: Space, history: History, expected: tuple[Prediction, ...], belief: Belief) -> Finish:
    """The best, if it can be certified; else what can be and comes nearest: by the curve, which knows the batches."""
    measured = sum(p.measured for p in expected)
    because = f"{measured} of {len(expected)} configurations measured; {belief.epochs.evidence}"
    best = _choice(job, history, expected)
    certain = {m.configuration for m in certifiable(job, space, history)}
    chosen = best if best in certain else _nearest_measured(job, expected, certain)
    return Finish(because, chosen, expected)


def _ranked(job: Job, space: Space, history: History) -> Finish:
    """By a stored model alone: an order, and no time."""
    belief = believe(job, space, history)
    if belief is None:
        return Finish("no stored model to rank configurations with; probe a few: --search partial")
    expected = tuple(replace(p, relative=True) for p in curve(job, space, history, belief))
    if not expected:
        return Finish("nothing that was tried fits memory")
    best = _choice(job, history, expected)
    return Finish("ranked by a stored model; nothing was measured", best, expected, unproven=True)
