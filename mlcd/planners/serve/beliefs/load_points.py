"""Load tests as columns: machine, load, and the logs of rate and figures.

For spaces with two knobs: a machine (text) and a load (a number: users, or a batch).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.planners.serve.beliefs.mixed_effects import ObservedRows
from mlcd.planners.serve.known_models import KEPT, Anatomy, ByIdentity, Cell, Knowledge, SeenModel
from mlcd.planners.serve.nouns import Figure, Knobs, knobs_of, served_by

LOADS = 12
"""Most loads of a seen model that are learned from; its curves between them add no information."""
LEAST = 1e-6
"""Smaller rates and latencies are raised to this."""


@dataclass(frozen=True)
class MachineLoads:
    """The machine and the load of each load test."""

    machines: tuple[str, ...]
    loads: Floats

    def among(self, names: Mapping[str, int]) -> NDArray[np.intp]:
        """The index of each one's machine."""
        return np.array([names[machine] for machine in self.machines], dtype=np.intp)


@dataclass(frozen=True)
class LoadPoints:
    """Load tests that ran. `error`: variance of the logs. A figure that was not measured is NaN.

    `at`: the index of each one's configuration in a space; -1 if it is not in the space.
    """

    places: MachineLoads
    log_rate: Floats
    log_figures: Mapping[Figure, Floats]
    error: Floats
    at: NDArray[np.intp]


def machine_and_load(anatomy: Anatomy, knobs: Knobs) -> tuple[str, float]:
    """The values of the two knobs."""
    values, (machine, load) = dict(knobs), anatomy.cell
    return str(values[machine]), float(values[load])


def places(anatomy: Anatomy, every: Iterable[Knobs]) -> MachineLoads:
    """The machine and the load of each of these settings."""
    both = [machine_and_load(anatomy, knobs) for knobs in every]
    return MachineLoads(tuple(machine for machine, _ in both), np.array([load for _, load in both], dtype=float))


def seen_points(anatomy: Anatomy, model: SeenModel) -> LoadPoints:
    """The load tests of a seen model, at `LOADS` loads at most."""
    loads = sorted({machine_and_load(anatomy, knobs)[1] for knobs in model.cells})
    chosen = {loads[round(i) - 1] for i in np.geomspace(1, len(loads), LOADS)} if len(loads) > LOADS else set(loads)
    kept = {knobs: cell for knobs, cell in model.cells.items() if machine_and_load(anatomy, knobs)[1] in chosen}
    nowhere = np.full(len(kept), -1, dtype=np.intp)
    return _points(places(anatomy, kept), tuple(kept.values()), np.zeros(len(kept)), nowhere)


def tried_points(anatomy: Anatomy, space: Space, history: History) -> LoadPoints:
    """The trials that ran; repeated ones are combined."""
    good = history.good
    cells = [Cell(m.rate, served_by(m).figures) for m in good]
    errors = np.array([m.rel_error**2 for m in good], dtype=float)
    at = np.array([space.index.get(m.configuration, -1) for m in good], dtype=np.intp)
    return _points(places(anatomy, [knobs_of(m.configuration) for m in good]), cells, errors, at)


def _points(where: MachineLoads, cells: Sequence[Cell], error: Floats, at: NDArray[np.intp]) -> LoadPoints:
    figures = {each: _logs([cell.figures.get(each, np.nan) for cell in cells]) for each in Figure}
    return LoadPoints(where, _logs([cell.rate for cell in cells]), figures, error, at)


def _logs(numbers: Sequence[float]) -> Floats:
    """The log of each number, which is at least `LEAST`."""
    return np.asarray(np.log(np.maximum(np.array(numbers, dtype=float), LEAST)))


def rows(points: LoadPoints, features: Floats, values: Floats) -> ObservedRows:
    """Load tests as rows of a regression, without those that lack the value."""
    known = np.isfinite(values)
    return ObservedRows(features[known], values[known], points.error[known], points.at[known])


def pairs(shown: Iterable[ObservedRows]) -> list[tuple[Floats, Floats]]:
    """Features and values of each model, without models that have no value."""
    return [(each.features, each.values) for each in shown if len(each.values)]


@lru_cache(KEPT)
def seen_on(knowledge: ByIdentity) -> frozenset[str]:
    """The machines on which any seen model ran."""
    known: Knowledge = knowledge.objects[0]
    return frozenset(machine_and_load(known.anatomy, knobs)[0] for model in known.models for knobs in model.cells)


def machines_and_resources(
    knowledge: Knowledge, space: Space
) -> tuple[dict[str, float], Mapping[str, Mapping[str, float]]]:
    """Dollars an hour of each machine (the median for machines that are not in the space), and their published data."""
    usd = {machine_and_load(knowledge.anatomy, knobs_of(c))[0]: c.usd_per_hour for c in space.configurations}
    usual = float(np.median(list(usd.values())))
    usd |= {name: usual for name in sorted(seen_on(ByIdentity(knowledge))) if name not in usd}
    return usd, knowledge.resources.get(knowledge.anatomy.cell[0], {})
