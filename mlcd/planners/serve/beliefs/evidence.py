"""What trials show about a device: batch time, memory, the host's limit, and which cells run at all.

Failure patterns are those of seen models, or plain ones: a category fails, on the whole device too or only on less, at
all batches, from a batch on, or up to one. Each trial multiplies the weight of every pattern by its likelihood. A
category that could not be profiled, although seen models could, probably fails at the batches of a profile.

Symbols   t    seconds of one batch on the device = batch / device rate
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats
from mlcd.core.history import History
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.beliefs.cells import BATCH, Cells
from mlcd.planners.serve.known_models import Knowledge, number_of
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Arrivals, Figure, ServingTask, served_by

NEAR = 0.97
"""A rate this close to the host's limit, or to the offered load, is only a lower bound on the device's rate."""
TYPICAL = Figure.P50
REPEATS = 0.01
"""Relative difference between repeated trials, however exact each one is."""

CONTRADICTORY = 0.7
"""If the log ratio of latency to batch time varies this much between cells, the records contradict themselves."""
EXACT = 1e-9
"""Smaller spreads are rounding errors."""


@dataclass(frozen=True)
class CellTrial:
    """One trial of a cell: the logs of its time and memory, None if unknown. Bounds are as in `Observations`."""

    measurement: Measurement
    time: float | None = None
    time_bound: int = 0
    sd: float = REPEATS
    memory: float | None = None
    memory_bound: int = 0
    runs: bool = True

    @property
    def exact(self) -> bool:
        """Whether another trial of the cell would show the same latency: no noise, and no wait for the host."""
        if self.time is None or self.time_bound != 0 or self.sd > REPEATS:
            return False
        return abs(math.log(batch_of(self.measurement.configuration) / self.measurement.rate) - self.time) < EXACT


@dataclass(frozen=True)
class Ratio:
    """The log of a figure over t: `mean` and `sd` between models, `within`: sd between the cells of one model."""

    mean: float = 0.0
    sd: float = 0.0
    within: float = 0.0


def cell_trials(knowledge: Knowledge, service: ServingTask, history: History, usual: Ratio) -> tuple[CellTrial, ...]:
    """The trials as cell trials, without those that failed by bad luck. `usual`: the ratio for the typical latency."""
    return tuple(_cell_trial(knowledge, service, m, usual) for m in history.measurements if not m.outcome.is_bad_luck)


def _cell_trial(knowledge: Knowledge, service: ServingTask, m: Measurement, usual: Ratio) -> CellTrial:
    allowed = knowledge.memory_gb(m.configuration)
    if m.outcome is Outcome.OUT_OF_MEMORY and allowed is not None:
        return CellTrial(m, memory=math.log(allowed), memory_bound=1)
    if not m.ok or m.rate <= 0:
        return CellTrial(m, runs=False)
    time, bound = _device_time(knowledge, service, m, usual)
    peak = served_by(m).peak_gb
    memory = math.log(peak) if peak else math.log(allowed) if allowed else None
    return CellTrial(m, math.log(time), bound, max(m.rel_error, REPEATS), memory, 0 if peak else -1)


def _device_time(knowledge: Knowledge, service: ServingTask, m: Measurement, usual: Ratio) -> tuple[float, int]:
    by_rate, by_latency = batch_of(m.configuration) / m.rate, _by_latency(m, usual)
    host = knowledge.host_rate(service.model.inputs, m.configuration)
    sent = service.min_rate if service.arrivals is Arrivals.OPEN else None
    held_up = m.rate >= NEAR * host if host is not None else _waited(knowledge, m, usual)
    if held_up and by_latency is not None:
        return by_latency, 0  # the host limits the rate, and the latency is the device's own
    return by_rate, -1 if held_up or (sent is not None and m.rate >= NEAR * sent) else 0


def _waited(knowledge: Knowledge, m: Measurement, usual: Ratio) -> bool:
    """Whether the device waited for the host, whose limit is unknown: it answered faster than requests arrived."""
    by_latency = _by_latency(m, usual)
    answered_faster = by_latency is not None and by_latency * m.rate < NEAR * batch_of(m.configuration)
    return answered_faster and bool(knowledge.anatomy.host)


def _by_latency(m: Measurement, usual: Ratio) -> float | None:
    """t estimated from the typical latency; None if that was not measured."""
    figure = served_by(m).figures.get(TYPICAL, 0.0)
    return figure / math.exp(usual.mean) if figure > 0 else None


def batch_of(configuration: Configuration) -> float:
    """The batch size of a configuration."""
    return max(number_of(configuration, BATCH) or 1.0, 1.0)


def host_limits(knowledge: Knowledge, service: ServingTask, history: History, cores: Floats, usual: Ratio) -> Floats:
    """Requests a second that these numbers of cores prepare; infinite if unknown or no limit.

    For an input kind without measurements, a trial that waited for its host shows the limit per core.
    """
    if not knowledge.anatomy.host:
        return np.full(len(cores), np.inf)
    table = sorted(
        (have, rate) for have, rate in knowledge.host_rates.get(service.model.inputs, {}).items() if have > 0
    )
    if table:
        have, rates = np.array(table).T
        return np.asarray(np.exp(np.interp(np.log(cores), np.log(have), np.log(rates))))
    each = [
        m.rate / cores_of(knowledge, m.configuration)
        for m in history.measurements
        if m.ok and _waited(knowledge, m, usual)
    ]
    return cores * max(each) if each else np.full(len(cores), np.inf)


def cores_of(knowledge: Knowledge, configuration: Configuration) -> float:
    """The cores that prepare requests; one if there is no such knob."""
    cores = number_of(configuration, knowledge.anatomy.host)
    return 1.0 if cores is None else max(cores, 1e-9)


def seen_ratio(knowledge: Knowledge, figure: Figure) -> Ratio:
    """The ratio of a figure to t among the seen models; a wide guess around 1 without data, or if cells contradict."""
    models = []
    for model in knowledge.models:
        logs = [
            math.log(cell.figures[figure] * cell.rate / max(float(dict(knobs).get(BATCH, 1)), 1.0))
            for knobs, cell in model.cells.items()
            if cell.figures.get(figure, 0.0) > 0 and cell.rate > 0
        ]
        if logs:
            models.append((float(np.mean(logs)), float(np.std(logs))))
    means, within = np.array(models).reshape(-1, 2).T
    if not models or within.mean() > CONTRADICTORY:
        return Ratio(0.0, 0.3, 0.1)
    return Ratio(float(means.mean()), float(means.std()), float(within.mean()))


def shown_ratio(before: Ratio, trials: Sequence[CellTrial], figure: Figure) -> Ratio:
    """The ratio updated by the trials, except those that waited for their host."""
    if before.sd < EXACT:
        return before
    shown = [
        math.log(seconds) - each.time
        for each in trials
        if each.time is not None and each.time_bound == 0
        if (seconds := served_by(each.measurement).figures.get(figure, 0.0)) > 0
    ]
    if not shown:
        return before
    spread = max(before.within, 1e-3) ** 2 / len(shown)
    gain = before.sd**2 / (before.sd**2 + spread)
    return Ratio(
        before.mean + gain * (float(np.mean(shown)) - before.mean), before.sd * math.sqrt(1 - gain), before.within
    )


Runs = NDArray[np.bool_]

NEW_PATTERN = 0.1
"""Prior probability of a plain pattern, not a seen model's."""
WRONG_ABOUT_A_CELL = 0.01
"""Probability that a pattern is wrong about one cell."""
UNPROFILED = 0.05
"""Probability that a failing category was profiled, or a running one was not."""
UNIFORM_WEIGHT = 0.3
"""Share of the weight that is distributed equally over seen models, whatever their similarity."""


@dataclass(frozen=True)
class Patterns:
    """Patterns of where a model runs, one per row, and the weight of each."""

    runs: Runs
    weights: Floats

    def sample(self, count: int, ran: Sequence[int], failed: Sequence[int], rng: np.random.Generator) -> Runs:
        """Sample patterns, corrected to agree with the cells that ran and those that failed."""
        log = self._log_weights(ran, failed)
        chance = np.exp(log - log.max())
        runs = self.runs[rng.choice(len(chance), count, p=chance / chance.sum())]
        runs[:, list(failed)] = False
        runs[:, list(ran)] = True
        return runs

    def log_chance(self, ran: Sequence[int], failed: Sequence[int]) -> float:
        """The log probability that these cells ran and those failed."""
        return float(np.logaddexp.reduce(self._log_weights(ran, failed)))

    def _log_weights(self, ran: Sequence[int], failed: Sequence[int]) -> Floats:
        log = np.log(self.weights)
        log = log + np.where(self.runs[:, list(ran)], 0.0, np.log(WRONG_ABOUT_A_CELL)).sum(axis=1)
        return np.asarray(log + np.where(self.runs[:, list(failed)], np.log(WRONG_ABOUT_A_CELL), 0.0).sum(axis=1))


def patterns(seen: Runs, near: Floats, facts: ModelFacts, customary: frozenset[int], cells: Cells) -> Patterns:
    """The patterns with their weights. `near`: similarity weights of the seen models. `customary`: the categories in
    which seen models have profiles.
    """
    plain, count = _plain(cells), len(seen)
    alike = (1 - UNIFORM_WEIGHT) * near + UNIFORM_WEIGHT / max(count, 1)
    # One more pattern, which runs everywhere, so that having no seen models is no special case.
    own = np.append(alike * count, 1.0) / (count + 1)
    weights = np.concatenate([(1 - NEW_PATTERN) * own, np.full(len(plain), NEW_PATTERN / max(len(plain), 1))])
    runs = np.vstack([seen, np.ones((1, len(cells)), bool), plain])
    if facts.profiles:
        batches = np.log([max(profile.batch, 1) for profile in facts.profiles])
        looked_at = np.isclose(cells.log_batch[:, None], batches[None, :]).any(axis=1)
        profiled = {cells.axes.category_of(profile) for profile in facts.profiles}
        for category in customary:
            fails = ~runs[:, looked_at & (cells.category == category)].all(axis=1)
            weights = weights * np.where(fails == (category in profiled), UNPROFILED, 1.0)
    return Patterns(runs, weights / weights.sum())


def _plain(cells: Cells) -> Runs:
    whole = cells.log_amounts.sum(axis=1) >= cells.log_amounts.sum(axis=1).max(initial=-np.inf) - 1e-9
    batches = np.unique(cells.log_batch)
    spans = [np.ones(len(cells), bool)]
    spans += [cells.log_batch >= batch for batch in batches[1:]] + [cells.log_batch <= batch for batch in batches[:-1]]
    parts = [np.ones(len(cells), bool)] + ([] if whole.all() else [~whole])
    plain = [
        ~((cells.category == i) & part & span)
        for i in range(len(cells.axes.categories))
        for part in parts
        for span in spans
    ]
    return np.array(plain, dtype=bool).reshape(len(plain), len(cells))
