"""What trials tell about a device: the time of a batch, memory, what the host can prepare, and which cells run at all.

A pattern of failure is a seen model's own, or a plain one: a category fails, everywhere or on less than the whole
device, at all batches, from a batch on, or up to one. A trial that ran or failed multiplies each pattern's weight by
how well it says so. A category that could not even be profiled, where others were, fails at the batches of a profile.

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
"""A rate so close to what the host can prepare, or to what was sent, is no more than a lower bound on the device's."""
TYPICAL = Figure.P50
REPEATS = 0.01
"""However exact a trial, the next one differs by about so much."""

CONTRADICTORY = 0.7
"""In the log: latencies that differ so much from what the rate says, from cell to cell, are not of these cells."""
EXACT = 1e-9
"""A spread so small is rounding."""


@dataclass(frozen=True)
class CellTrial:
    """One trial of a cell: logs of its time and memory, None if unknown. `bound`: as in `surfaces.Seen`."""

    measurement: Measurement
    time: float | None = None
    time_bound: int = 0
    sd: float = REPEATS
    memory: float | None = None
    memory_bound: int = 0
    runs: bool = True

    @property
    def exact(self) -> bool:
        """Whether any trial of the cell would show the same latency: this one was steady, and waited for no host."""
        if self.time is None or self.time_bound != 0 or self.sd > REPEATS:
            return False
        return abs(math.log(batch_of(self.measurement.configuration) / self.measurement.rate) - self.time) < EXACT


@dataclass(frozen=True)
class Ratio:
    """Log of a figure over t: over models `mean` and `sd`, over the cells of one model `within`."""

    mean: float = 0.0
    sd: float = 0.0
    within: float = 0.0


def cell_trials(knowledge: Knowledge, service: ServingTask, history: History, usual: Ratio) -> tuple[CellTrial, ...]:
    """What the trials tell, those left out that say nothing. `usual`: of a typical latency, over the seen models."""
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
        return by_latency, 0  # the host was the slower one, and the latency is the device's own
    return by_rate, -1 if held_up or (sent is not None and m.rate >= NEAR * sent) else 0


def _waited(knowledge: Knowledge, m: Measurement, usual: Ratio) -> bool:
    """Whether the device waited for the host, whose rate is unknown: it answered faster than requests came."""
    by_latency = _by_latency(m, usual)
    answered_faster = by_latency is not None and by_latency * m.rate < NEAR * batch_of(m.configuration)
    return answered_faster and bool(knowledge.anatomy.host)


def _by_latency(m: Measurement, usual: Ratio) -> float | None:
    """t, from a typical latency; None if none was measured."""
    figure = served_by(m).figures.get(TYPICAL, 0.0)
    return figure / math.exp(usual.mean) if figure > 0 else None


def batch_of(configuration: Configuration) -> float:
    """The batch that a configuration answers together."""
    return max(number_of(configuration, BATCH) or 1.0, 1.0)


def host_limits(knowledge: Knowledge, service: ServingTask, history: History, cores: Floats, usual: Ratio) -> Floats:
    """Requests a second that so many cores prepare; infinite where that is no limit, or unknown.

    Of a kind of input that was never measured, a trial that waited for its host tells; cores are then taken to add up.
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
    """How many prepare its requests; one where that may not be set."""
    cores = number_of(configuration, knowledge.anatomy.host)
    return 1.0 if cores is None else max(cores, 1e-9)


def seen_ratio(knowledge: Knowledge, figure: Figure) -> Ratio:
    """How a figure relates to t, for the seen models; a wide guess about 1 if none has it or its cells disagree."""
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
    """The same once trials have shown theirs; those that waited for their host are no evidence of it."""
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

UNHEARD_OF = 0.1
"""The chance of a plain pattern, and not a seen model's."""
SURPRISE = 0.01
"""The chance that a pattern is wrong about one cell."""
UNPROFILED = 0.05
"""The chance that a category was profiled though it fails, or was not though it runs."""
UNLIKE = 0.3
"""The weight that all seen models share alike, however near."""


@dataclass(frozen=True)
class Patterns:
    """Where a model runs, one pattern a row, and the weight of each."""

    runs: Runs
    weights: Floats

    def sample(self, count: int, ran: Sequence[int], failed: Sequence[int], rng: np.random.Generator) -> Runs:
        """So many patterns that agree with the cells that ran, and those that failed."""
        log = self._log_weights(ran, failed)
        chance = np.exp(log - log.max())
        runs = self.runs[rng.choice(len(chance), count, p=chance / chance.sum())]
        runs[:, list(failed)] = False
        runs[:, list(ran)] = True
        return runs

    def log_chance(self, ran: Sequence[int], failed: Sequence[int]) -> float:
        """Of that these cells ran, and those failed."""
        return float(np.logaddexp.reduce(self._log_weights(ran, failed)))

    def _log_weights(self, ran: Sequence[int], failed: Sequence[int]) -> Floats:
        log = np.log(self.weights)
        log = log + np.where(self.runs[:, list(ran)], 0.0, np.log(SURPRISE)).sum(axis=1)
        return np.asarray(log + np.where(self.runs[:, list(failed)], np.log(SURPRISE), 0.0).sum(axis=1))


def patterns(seen: Runs, near: Floats, facts: ModelFacts, customary: frozenset[int], cells: Cells) -> Patterns:
    """What may fail: as the seen models did, or plainly. `customary`: categories that seen models have profiles of."""
    plain, count = _plain(cells), len(seen)
    alike = (1 - UNLIKE) * near + UNLIKE / max(count, 1)
    # One more, of a model that runs everywhere, so that having seen nobody is no special case.
    own = np.append(alike * count, 1.0) / (count + 1)
    weights = np.concatenate([(1 - UNHEARD_OF) * own, np.full(len(plain), UNHEARD_OF / max(len(plain), 1))])
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
