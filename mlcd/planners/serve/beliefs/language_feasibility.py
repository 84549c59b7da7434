"""Where a language model runs: whether its weights fit, whether it can be split over GPUs, and its limit of users.

A model needs e^t times the memory of its weights (at 2 bytes per parameter) and runs on several GPUs only if it can be
split. On each machine it may fail for an unknown reason (q, by GPU type) or have a limit of users (c). t and 'can be
split' are properties of the model, on a grid small enough for exact Bayes' rule. q, c and the prior of the grid are
learned from seen models by expectation maximisation. Unpublished data of a machine are guessed from its price.

Symbols   t    log of (memory needed / memory of the weights)     r    log of (memory there / memory of the weights)
          q    probability that a GPU type fails, by type         c    probability that a machine has a limit of users
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.history import History
from mlcd.core.measurement import Outcome
from mlcd.planners.serve.beliefs.load_points import machine_and_load
from mlcd.planners.serve.known_models import Anatomy, SeenModel
from mlcd.planners.serve.nouns import knobs_of

GB_FOR_A_DOLLAR, GB_S_FOR_A_DOLLAR = 10.0, 300.0
"""Memory, and memory bandwidth, per dollar an hour (L4 to H100, 2024); used if nothing else is known."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A number of GPUs of one type, with their total memory and bandwidth."""

    name: str
    kind: str
    count: int
    memory_gb: float
    bandwidth_gb_s: float


def machines(names: Mapping[str, float], resources: Mapping[str, Mapping[str, float]]) -> dict[str, Machine]:
    """The machines by name, from their dollars an hour (`names`).

    Missing data are what the price would buy of the other machines; the number of GPUs is read from the name.
    """
    known = {name: resources.get(name, {}) for name in names}
    counts = {name: int(known[name].get("count", counted(name)[0])) for name in names}
    gb = {name: each["memory_gb"] for name, each in known.items() if "memory_gb" in each}
    gb_s = {name: each["bandwidth_gb_s"] * counts[name] for name, each in known.items() if "bandwidth_gb_s" in each}
    usual_gb, usual_gb_s = _for_a_dollar(gb, names, GB_FOR_A_DOLLAR), _for_a_dollar(gb_s, names, GB_S_FOR_A_DOLLAR)
    return {
        name: Machine(
            name, counted(name)[1], counts[name], gb.get(name, usual_gb * usd), gb_s.get(name, usual_gb_s * usd)
        )
        for name, usd in names.items()
    }


def counted(name: str) -> tuple[int, str]:
    """Number and type of the GPUs: '4 x T4' is four T4; a name without a number is one GPU of that type."""
    match = re.fullmatch(r"\s*(\d+)\s*x\s*(.+?)\s*", name)
    return (int(match[1]), match[2]) if match else (1, name)


def _for_a_dollar(known: Mapping[str, float], usd: Mapping[str, float], otherwise: float) -> float:
    """The amount that a dollar an hour buys: the geometric mean over machines with known amounts."""
    bought = [amount / usd[name] for name, amount in known.items()]
    return float(np.exp(np.mean(np.log(bought)))) if bought else otherwise


NEEDS = np.linspace(-1.0, 2.0, 31)
"""The grid of t: from less than the 16-bit weights (a quantised model) to seven times as much."""
TYPICAL, SPREAD = 0.25, 0.3
"""Prior mean and standard deviation of t: a quarter more than the weights."""
SPLITS = 0.9
"""Prior probability that a model can be split."""
ODD, CEILING = 0.05, 0.03
"""Prior means of q and c."""
PRIOR_COUNT = 2.0
"""The number of models or machines that these priors count for."""
ROUNDS = 5


@dataclass(frozen=True)
class Tried:
    """Results of a model on one machine: the most users that it served, and the fewest that it did not."""

    machine: Machine
    served: float = 0.0
    refused: float = np.inf
    short_of_memory: bool = False


@dataclass(frozen=True)
class Feasibility:
    """The belief about where a model runs. `chances`: probabilities by t (rows) and 'can be split' (no, yes).

    `odd`: q by GPU type; `odd_elsewhere`: q of other types; `ceiling`: c.
    """

    chances: Floats
    odd: Mapping[str, float]
    odd_elsewhere: float = ODD
    ceiling: float = CEILING

    def given(self, tried: Sequence[Tried], weights_gb: float) -> tuple[Feasibility, float]:
        """The belief given a model's results on some machines, and the log probability of these results."""
        logs = sum((np.log(self._likelihood(each, weights_gb)) for each in tried), np.zeros_like(self.chances))
        joint = self.chances * np.exp(logs - logs.max())
        return replace(self, chances=joint / joint.sum()), float(np.log(joint.sum()) + logs.max())

    def draw(
        self,
        machines: Sequence[Machine],
        weights_gb: float,
        tried: Sequence[Tried],
        loads: Floats,
        count: int,
        rng: np.random.Generator,
    ) -> Floats:
        """For each sample and machine, the fewest users that it does not serve; 0 if it does not run at all.

        The belief must already be conditioned on `tried`, which is needed for the machines with known results.
        """
        flat = rng.choice(self.chances.size, size=count, p=self.chances.ravel())
        need, splits = NEEDS[flat // 2], flat % 2 == 1
        known = {each.machine: each for each in tried}
        limits = np.empty((count, len(machines)))
        for column, machine in enumerate(machines):
            can = (_room(machine, weights_gb) > need) & (splits | (machine.count == 1))
            runs = can * (1 - self._odd(machine))
            limits[:, column] = self._limits(runs, known.get(machine, Tried(machine)), loads, rng)
        return limits

    def _limits(self, runs: Floats, tried: Tried, loads: Floats, rng: np.random.Generator) -> Floats:
        """The limits on one machine, given the probability that the model runs there and its results."""
        chance = rng.random(len(runs))
        if np.isfinite(tried.refused):
            # Either it never runs there, or its limit is below the number of users that failed.
            between = loads[(loads > tried.served) & (loads <= tried.refused)]
            bears = rng.choice(between if len(between) else np.array([tried.refused]), len(runs))
            never = chance * (1 - runs + runs * self.ceiling) < 1 - runs
            return np.where(never & (tried.served == 0), 0.0, bears)
        more = np.append(loads[loads > tried.served], np.inf)
        bears = np.where(rng.random(len(runs)) < self.ceiling, rng.choice(more, len(runs)), np.inf)
        return np.where((chance < runs) | (tried.served > 0), bears, 0.0)

    def _odd(self, machine: Machine) -> float:
        return self.odd.get(machine.kind, self.odd_elsewhere)

    def _can(self, machine: Machine, weights_gb: float) -> Floats:
        """Which hypotheses of the grid allow the model to run there, apart from q."""
        room = (_room(machine, weights_gb) > NEEDS)[:, None]
        return np.asarray((room & np.array([machine.count == 1, True])).astype(float))

    def _likelihood(self, tried: Tried, weights_gb: float) -> Floats:
        can = self._can(tried.machine, weights_gb)
        if tried.served > 0:
            chance = can * (1 - self._odd(tried.machine))
        elif tried.short_of_memory:
            chance = 1 - (_room(tried.machine, weights_gb) > NEEDS)[:, None] * np.ones(2) * (1 - self.ceiling)
        else:
            chance = 1 - can * (1 - self._odd(tried.machine)) * (1 - self.ceiling)
        return np.clip(chance, 1e-6, 1.0)  # no hypothesis is ruled out: the facts of a model may be wrong


def prior() -> Feasibility:
    """The belief without seen models."""
    need = np.exp(-0.5 * ((NEEDS - TYPICAL) / SPREAD) ** 2)
    return Feasibility(np.outer(need / need.sum(), [1 - SPLITS, SPLITS]), {})


def learn(seen: Sequence[tuple[float, Sequence[Tried]]]) -> Feasibility:
    """The belief learned from each seen model's weights in GB and its results on every machine."""
    first = prior()
    kinds = sorted({each.machine.kind for _, tried in seen for each in tried})
    limited = sum(each.served > 0 and np.isfinite(each.refused) for _, tried in seen for each in tried)
    served = sum(each.served > 0 for _, tried in seen for each in tried)
    now = replace(first, ceiling=(PRIOR_COUNT * CEILING + limited) / (PRIOR_COUNT + served))
    for _ in range(ROUNDS if seen else 0):
        beliefs = [(now.given(tried, gb)[0].chances, gb, tried) for gb, tried in seen]
        could, failed = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0)
        for chances, gb, tried in beliefs:
            for each in tried:
                chance = float(np.sum(chances * now._can(each.machine, gb)))
                could[each.machine.kind] += chance
                failed[each.machine.kind] += 0.0 if each.served > 0 else chance
        elsewhere = (PRIOR_COUNT * ODD + sum(failed.values())) / (PRIOR_COUNT + sum(could.values()))
        odd = {kind: (PRIOR_COUNT * elsewhere + failed[kind]) / (PRIOR_COUNT + could[kind]) for kind in kinds}
        chances = (PRIOR_COUNT * first.chances + sum(each for each, _, _ in beliefs)) / (PRIOR_COUNT + len(seen))
        now = replace(now, chances=_smooth(chances), odd=odd, odd_elsewhere=elsewhere)
    return now


def tried_in(anatomy: Anatomy, history: History, by_name: Mapping[str, Machine]) -> tuple[Tried, ...]:
    """The results of a history's trials, by machine, without trials that failed by bad luck."""
    by_machine: dict[str, Tried] = {}
    for m in history.measurements:
        name, users = machine_and_load(anatomy, knobs_of(m.configuration))
        before = by_machine.get(name, Tried(by_name[name]))
        if m.ok:
            by_machine[name] = replace(before, served=max(before.served, users))
        elif not m.outcome.is_bad_luck:
            short = before.short_of_memory or m.outcome is Outcome.OUT_OF_MEMORY
            by_machine[name] = replace(before, refused=min(before.refused, users), short_of_memory=short)
    return tuple(by_machine.values())


def tried_by_seen(
    anatomy: Anatomy, models: Sequence[SeenModel], by_name: Mapping[str, Machine]
) -> list[tuple[Tried, ...]]:
    """The results of each seen model on every machine that any of them ran on. A missing cell did not run."""
    ran = [[machine_and_load(anatomy, knobs) for knobs in model.cells] for model in models]
    names = sorted({name for each in ran for name, _ in each})
    loads = sorted({load for each in ran for _, load in each})
    tried = []
    for each in ran:
        most = {name: max((load for where, load in each if where == name), default=0.0) for name in names}
        refused = {name: min((load for load in loads if load > most[name]), default=np.inf) for name in names}
        tried.append(tuple(Tried(by_name[name], most[name], refused[name]) for name in names))
    return tried


def _smooth(chances: Floats) -> Floats:
    """Smooth along t, since t is continuous."""
    padded = np.pad(chances, ((1, 1), (0, 0)), mode="edge")
    smooth: Floats = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    smooth /= smooth.sum()
    return smooth


def _room(machine: Machine, weights_gb: float) -> float:
    return float(np.log(machine.memory_gb / weights_gb))
