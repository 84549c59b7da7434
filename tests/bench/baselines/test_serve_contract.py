"""Every method for serving keeps the contract; the contract itself can be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step, Strategy
from mlcd.planners.serve.known_models import Kind, Knowledge
from mlcd.testing.services import random_world
from mlcd.testing.serving import ServingStrategyContract, serve
from mlcd_bench.baselines.serve import (
    Ernest,
    Exhaustive,
    Falcon,
    GpEi,
    HeterBO,
    Morphling,
    Popular,
    Portfolio,
    RandomTrials,
    Vesta,
)

pytestmark = pytest.mark.night  # research; our own method keeps the same contract at each change


class TestErnest(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Ernest(knowledge, seed)


class TestExhaustive(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Exhaustive(knowledge, seed)


class TestFalcon(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Falcon(knowledge, seed)


class TestGpEi(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return GpEi(knowledge, seed)


class TestHeterBO(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return HeterBO(knowledge, seed)


class TestMorphling(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Morphling(knowledge, seed)


class TestPopular(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Popular(knowledge, seed)


class TestPortfolio(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Portfolio(knowledge, seed)


class TestRandomTrials(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return RandomTrials(knowledge, seed)


class TestVesta(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Vesta(knowledge, seed)


@dataclass(frozen=True)
class Rogue:
    """Always takes the same step, whatever the history."""

    step: Callable[[Space], Step]

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        return self.step(space)


class Contract(ServingStrategyContract):
    """Not collected by pytest, but called by a test."""

    def __init__(self, step: Callable[[Space], Step]) -> None:
        self.step = step

    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Rogue(self.step)


def test_a_strategy_that_never_ends_breaks_the_contract():
    with pytest.raises(AssertionError, match="never ends"):
        Contract(lambda space: Probe(space.configurations[0], "again")).test_it_takes_no_more_trials_than_it_may(
            Kind.INSTANCES
        )


def test_a_step_without_a_reason_breaks_the_contract():
    with pytest.raises(AssertionError):
        Contract(
            lambda space: Probe(space.configurations[0], "")
        ).test_its_first_step_needs_no_history_and_gives_a_reason(Kind.INSTANCES)


def test_a_strategy_that_tries_nothing_breaks_the_contract():
    with pytest.raises(AssertionError):
        Contract(lambda space: Finish("no wish")).test_it_takes_no_more_trials_than_it_may(Kind.INSTANCES)


@pytest.mark.parametrize("kind", list(Kind))
def test_exhaustive_search_finds_the_optimum(kind: Kind):
    world = random_world(kind, 21)
    job = world.job(caps=(world.latency(0.6),), trials=None)
    decision = serve(Exhaustive(world.seen), world, job).decision
    chosen = world.recorded.composed(world.unseen, decision.configuration)
    assert chosen is not None
    for configuration in world.space.configurations:
        cell = world.recorded.composed(world.unseen, configuration)
        if cell is not None and cell.figures[job.ask.caps[0].figure] <= job.ask.caps[0].at_most_s:
            value = chosen.rate / decision.configuration.usd_per_hour
            assert cell.rate / configuration.usd_per_hour <= value * (1 + 1e-9)
