"""Load tests as columns: on which machine, under which load, and what came out, in logs.

For spaces of two knobs: a machine, which is a word, and a load, which is a number (users, or a batch).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.history import History
from mlcd.planners.serve.known_models import Anatomy, Cell, SeenModel
from mlcd.planners.serve.nouns import Figure, Knobs, Served, knobs_of

LOADS = 12
"""Loads of a seen model that are learnt from; between them, its curves hold no news."""
LEAST = 1e-6
"""Below this, a rate or a latency is nothing at all."""


@dataclass(frozen=True)
class Places:
    """Where load tests stand: the machine and the load of each."""

    machines: tuple[str, ...]
    loads: Floats

    def among(self, names: Mapping[str, int]) -> NDArray[np.intp]:
        """The place of each one's machine in a list."""
        return np.array([names[machine] for machine in self.machines], dtype=np.intp)

    def with_load_over(self, times: float) -> Places:
        """The same machines under so many times less load."""
        return Places(self.machines, self.loads / times)


@dataclass(frozen=True)
class LoadPoints:
    """Load tests that ran. `error`: variance of the logs. A figure that nobody told is NaN.

    `at`: where each stands in a space; -1 where it does not.
    """

    places: Places
    log_rate: Floats
    log_figures: Mapping[Figure, Floats]
    error: Floats
    at: NDArray[np.intp]


def machine_and_load(anatomy: Anatomy, knobs: Knobs) -> tuple[str, float]:
    """How the two knobs are set."""
    told = dict(knobs)
    machine, load = anatomy.cell
    return str(told[machine]), float(told[load])


def places(anatomy: Anatomy, every: Iterable[Knobs]) -> Places:
    """Where each of these stands."""
    told = [machine_and_load(anatomy, knobs) for knobs in every]
    return Places(tuple(machine for machine, _ in told), np.array([load for _, load in told], dtype=float))


def seen_points(anatomy: Anatomy, model: SeenModel) -> LoadPoints:
    """What a seen model did, at a dozen loads at the most."""
    loads = sorted({machine_and_load(anatomy, knobs)[1] for knobs in model.cells})
    chosen = {loads[round(i) - 1] for i in np.geomspace(1, len(loads), LOADS)} if len(loads) > LOADS else set(loads)
    kept = {knobs: cell for knobs, cell in model.cells.items() if machine_and_load(anatomy, knobs)[1] in chosen}
    nowhere = np.full(len(kept), -1, dtype=np.intp)
    return _points(places(anatomy, kept), tuple(kept.values()), np.zeros(len(kept)), nowhere)


def tried_points(anatomy: Anatomy, space: Space, history: History) -> LoadPoints:
    """The trials that ran; repeated ones are one."""
    good = history.good
    cells = [Cell(m.rate, m.evidence.figures if isinstance(m.evidence, Served) else {}) for m in good]
    errors = np.array([m.rel_error**2 for m in good], dtype=float)
    at = np.array([space.index.get(m.configuration, -1) for m in good], dtype=np.intp)
    return _points(places(anatomy, [knobs_of(m.configuration) for m in good]), cells, errors, at)


def _points(where: Places, cells: Sequence[Cell], error: Floats, at: NDArray[np.intp]) -> LoadPoints:
    figures = {each: _logs([cell.figures.get(each, np.nan) for cell in cells]) for each in Figure}
    return LoadPoints(where, _logs([cell.rate for cell in cells]), figures, error, at)


def _logs(numbers: Sequence[float]) -> Floats:
    """Of each; one that is nothing at all counts as hardly anything."""
    logs: Floats = np.log(np.maximum(np.array(numbers, dtype=float), LEAST))
    return logs


def dollars(anatomy: Anatomy, configurations: Iterable[Configuration]) -> dict[str, float]:
    """What each machine costs an hour."""
    return {machine_and_load(anatomy, knobs_of(each))[0]: each.usd_per_hour for each in configurations}
