"""Where a language model runs at all: whether its weights fit, whether it can be split, and how many users it bears.

A model needs e^t times its weights' 2 bytes a parameter, runs on more than one GPU only if it can be split, and on each
machine it may fail for reasons of its own (q, by GPU type) or bear only so many users (c). t and 'can be split' are the
model's; the grid over both is small enough for Bayes' rule as it stands. q, c and the chances of t and of splitting
are learnt from seen models by expectation maximisation. What is not published of a machine is guessed from its price.

Symbols   t    log of (memory needed / memory of the weights)     r    log of (memory there / memory of the weights)
          q    chance that a type of GPU does not do, by type     c    chance that a machine bears only so many users
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
"""Of memory, and of its bandwidth, an hour's dollar buys about so much where nothing tells more (L4 to H100, 2024)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """So many GPUs of a kind, and what all of them have together."""

    name: str
    kind: str
    count: int
    memory_gb: float
    bandwidth_gb_s: float


def machines(names: Mapping[str, float], resources: Mapping[str, Mapping[str, float]]) -> dict[str, Machine]:
    """Each machine by its name, given with its dollars an hour.

    What nobody tells of one is what its price would buy of the others; its number of GPUs is read from its name.
    """
    told = {name: resources.get(name, {}) for name in names}
    counts = {name: int(told[name].get("count", counted(name)[0])) for name in names}
    gb = {name: each["memory_gb"] for name, each in told.items() if "memory_gb" in each}
    gb_s = {name: each["bandwidth_gb_s"] * counts[name] for name, each in told.items() if "bandwidth_gb_s" in each}
    usual_gb, usual_gb_s = _for_a_dollar(gb, names, GB_FOR_A_DOLLAR), _for_a_dollar(gb_s, names, GB_S_FOR_A_DOLLAR)
    return {
        name: Machine(
            name, counted(name)[1], counts[name], gb.get(name, usual_gb * usd), gb_s.get(name, usual_gb_s * usd)
        )
        for name, usd in names.items()
    }


def counted(name: str) -> tuple[int, str]:
    """How many of which kind: '4 x T4' is four of T4; a name without a number is one of its kind."""
    match = re.fullmatch(r"\s*(\d+)\s*x\s*(.+?)\s*", name)
    return (int(match[1]), match[2]) if match else (1, name)


def _for_a_dollar(told: Mapping[str, float], usd: Mapping[str, float], otherwise: float) -> float:
    """How much of it a dollar an hour buys, in the middle of the machines that tell."""
    bought = [amount / usd[name] for name, amount in told.items()]
    return float(np.exp(np.mean(np.log(bought)))) if bought else otherwise


NEEDS = np.linspace(-1.0, 2.0, 31)
"""t: from less than its 16-bit weights (a quantised model) to seven times these."""
TYPICAL, SPREAD = 0.25, 0.3
"""Of t, before anything is seen: a quarter more than the weights, for what a server holds besides."""
SPLITS = 0.9
ODD, CEILING = 0.05, 0.03
"""Chances, before anything is seen, that a type does not do, and that a machine bears only so many users."""
FAITH = 2.0
"""How many models or machines these first guesses count for."""
ROUNDS = 5


@dataclass(frozen=True)
class Tried:
    """What is known of a model on one machine: the most users it served, and the fewest it did not."""

    machine: Machine
    served: float = 0.0
    refused: float = np.inf
    short_of_memory: bool = False


@dataclass(frozen=True)
class Feasibility:
    """Beliefs about where a model runs. `chances`: of each t (rows) without and with splitting (columns)."""

    chances: Floats
    odd: Mapping[str, float]
    odd_elsewhere: float = ODD
    ceiling: float = CEILING

    def given(self, tried: Sequence[Tried], weights_gb: float) -> tuple[Feasibility, float]:
        """After what a model did on some machines; and the log chance of that."""
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
        """For each sample and machine, the fewest users that it does not serve: 0 where it does not run at all.

        Of a belief that what was `tried` is part of already; that says besides which machines are known.
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
        """On one machine, given the chance that it runs there and what was tried."""
        chance = rng.random(len(runs))
        if np.isfinite(tried.refused):
            # Either it never runs there, or it bears fewer users than it was tried with.
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
        """Which of the grid's models could run there, failures of the GPU type (q) aside."""
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
        return np.clip(chance, 1e-6, 1.0)  # nothing is impossible: the facts of a model may be wrong


def prior() -> Feasibility:
    """Before any model was seen."""
    need = np.exp(-0.5 * ((NEEDS - TYPICAL) / SPREAD) ** 2)
    return Feasibility(np.outer(need / need.sum(), [1 - SPLITS, SPLITS]), {})


def learn(seen: Sequence[tuple[float, Sequence[Tried]]]) -> Feasibility:
    """From each seen model's weights in GB and what it did on every machine."""
    first = prior()
    kinds = sorted({each.machine.kind for _, tried in seen for each in tried})
    limited = sum(each.served > 0 and np.isfinite(each.refused) for _, tried in seen for each in tried)
    served = sum(each.served > 0 for _, tried in seen for each in tried)
    now = replace(first, ceiling=(FAITH * CEILING + limited) / (FAITH + served))
    for _ in range(ROUNDS if seen else 0):
        beliefs = [(now.given(tried, gb)[0].chances, gb, tried) for gb, tried in seen]
        could, failed = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0.0)
        for chances, gb, tried in beliefs:
            for each in tried:
                chance = float(np.sum(chances * now._can(each.machine, gb)))
                could[each.machine.kind] += chance
                failed[each.machine.kind] += 0.0 if each.served > 0 else chance
        elsewhere = (FAITH * ODD + sum(failed.values())) / (FAITH + sum(could.values()))
        odd = {kind: (FAITH * elsewhere + failed[kind]) / (FAITH + could[kind]) for kind in kinds}
        chances = (FAITH * first.chances + sum(each for each, _, _ in beliefs)) / (FAITH + len(seen))
        now = replace(now, chances=_smooth(chances), odd=odd, odd_elsewhere=elsewhere)
    return now


def tried_in(anatomy: Anatomy, history: History, by_name: Mapping[str, Machine]) -> tuple[Tried, ...]:
    """What the trials of a history show, by machine. Trials that failed by bad luck are left out."""
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
    """What each seen model tells of every machine that any of them ran on: a missing cell did not run."""
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
    """t is a number: what holds at one value of the grid nearly holds at the next."""
    padded = np.pad(chances, ((1, 1), (0, 0)), mode="edge")
    smooth: Floats = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    smooth /= smooth.sum()
    return smooth


def _room(machine: Machine, weights_gb: float) -> float:
    return float(np.log(machine.memory_gb / weights_gb))
