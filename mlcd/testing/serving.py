"""Contract tests for serving strategies. Subclass the contract, and define how to make your strategy:

class TestFalcon(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return Falcon(knowledge, seed)
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mlcd.clouds.serving.recorded import RecordedService
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision
from mlcd.core.drive import search
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Ledger, Line, Reserved, Started
from mlcd.core.strategy import Probe, Step, Strategy
from mlcd.planners.serve.grey_box import BELIEFS
from mlcd.planners.serve.known_models import Kind, Knowledge
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.nouns import Cap, Figure
from mlcd.planners.serve.service_level import best, decide, refusal
from mlcd.testing.promises import check_books, check_repeatable
from mlcd.testing.services import World, random_world

NOISE = 0.03
KINDS = pytest.mark.parametrize("kind", list(BELIEFS))
IMPOSSIBLE = Cap(Figure.P95, 1e-7)


@dataclass(frozen=True)
class Search:
    """A finished search."""

    job: Job
    lines: list[Line]
    history: History
    decision: Decision

    @property
    def tried(self) -> list[Configuration]:
        return [line.entry.launch.configuration for line in self.lines if isinstance(line.entry, Reserved)]


@dataclass
class _EndsInTime:
    """Fails if a strategy does not end: it may propose each configuration once, and be refused each once."""

    inner: Strategy
    steps: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        self.steps += 1
        assert self.steps <= 3 * len(space) + 10, "it never ends"
        return self.inner.next_step(job, space, history)


def serve(strategy: Strategy, world: World, job: Job, noise: float = 0.0, seed: int = 0) -> Search:
    """A whole search on a ledger in memory, with the budget guarded."""
    ledger, clock = Ledger(None), VirtualClock()
    backend = RecordedService(world.recorded, world.unseen, clock, noise, seed)
    profiler = ServingProfiler(backend, noise_floor=0.0, tight=None, warm_up=False, stated_noise=noise)
    book = ledger.begin(job.name, clock, Started(job, world.space, "test", backend.provenance, "test"))
    decision = search(_EndsInTime(strategy), job, world.space, profiler, book, guard=refusal, decide=decide)
    assert ledger.account(book.run) == book.account, "replay differs from what was live"
    return Search(job, ledger.lines(book.run), book.account.history, decision)


class ServingStrategyContract:
    """The contract of every serving strategy."""

    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        raise NotImplementedError

    @KINDS
    @pytest.mark.parametrize("seed", range(4))
    def test_it_keeps_every_promise_on_random_services(self, kind: Kind, seed: int) -> None:
        world = random_world(kind, seed)
        self._check(world, random_job(world, np.random.default_rng(seed)), NOISE, seed)

    @pytest.mark.parametrize("objective", [Objective.PER_DOLLAR, Objective.CHEAPEST, Objective.FASTEST])
    @pytest.mark.parametrize("limited", [False, True])
    def test_it_keeps_every_promise_under_every_kind_of_goal(self, objective: Objective, limited: bool) -> None:
        world = random_world(Kind.DEVICE, 11)
        goal = Goal(objective, 0.4, 1_300.0) if limited else Goal(objective)
        self._check(world, world.job(goal, (world.latency(0.5),), min_rate=50.0))

    @KINDS
    def test_it_tries_nothing_twice_while_answers_are_exact(self, kind: Kind) -> None:
        world = random_world(kind, 1)
        tried = self._check(world, world.job(trials=8)).tried
        assert len(tried) == len(set(tried))

    @KINDS
    def test_it_takes_no_more_trials_than_it_may(self, kind: Kind) -> None:
        world = random_world(kind, 2)
        assert len(self._check(world, world.job(trials=1)).tried) == 1

    def test_it_tries_nothing_that_the_budget_has_no_room_for(self) -> None:
        world = random_world(Kind.DEVICE, 3)
        result = self._check(world, world.job(Goal(Objective.PER_DOLLAR, budget_usd=1e-6)))
        assert result.tried == []
        assert result.decision.configuration is None

    @KINDS
    def test_it_ends_when_nothing_can_serve_the_model(self, kind: Kind) -> None:
        world = random_world(kind, 4).where_nothing_runs()
        assert self._check(world, world.job(trials=8)).decision.configuration is None

    @KINDS
    def test_it_ends_on_a_space_of_one(self, kind: Kind) -> None:
        world = random_world(kind, 5)
        runs = next(i for i, c in enumerate(world.space.configurations) if world.recorded.composed(world.unseen, c))
        result = self._check(world.only(runs), world.job())
        assert result.decision.configuration == world.space.configurations[runs]

    @KINDS
    def test_it_ends_when_nothing_keeps_the_caps(self, kind: Kind) -> None:
        world = random_world(kind, 6)
        assert self._check(world, world.job(caps=(IMPOSSIBLE,), trials=8)).decision.configuration is None

    @KINDS
    def test_it_serves_a_model_of_which_nothing_is_known_with_nothing_to_learn_from(self, kind: Kind) -> None:
        world = random_world(kind, 7)
        models = [
            replace(m, facts=replace(m.facts, profiles=(), inputs="", weights_mb=None, parameters=None))
            for m in world.recorded.models
            if m == world.unseen
        ]
        alone = replace(world, recorded=replace(world.recorded, models=tuple(models)))
        assert self._check(alone, alone.job(trials=5)).tried

    @KINDS
    def test_its_first_step_needs_no_history_and_gives_a_reason(self, kind: Kind) -> None:
        world = random_world(kind, 8)
        step = self.strategy(world.seen, 0).next_step(world.job(), world.space, History())
        assert isinstance(step, Probe)
        assert step.because

    def test_it_goes_on_to_the_end_of_a_small_space_when_trials_are_not_counted(self) -> None:
        world = random_world(Kind.INSTANCES, 9)
        self._check(world, world.job(trials=None))

    def _check(self, world: World, job: Job, noise: float = 0.0, seed: int = 0) -> Search:
        result = serve(self.strategy(world.seen, seed), world, job, noise, seed)
        check_books(job.goal, result.lines)
        check_repeatable(self.strategy(world.seen, seed), job, result.lines)
        assert job.search.trials is None or len(result.history.measurements) <= job.search.trials, "too many trials"
        assert result.decision.because, "a decision without a reason"
        right = best(job, result.history.good)
        expected = right.configuration if right is not None else None
        assert result.decision.configuration == expected, "not the best that was measured"
        return result


def random_job(world: World, rng: np.random.Generator) -> Job:
    """An objective with or without a cap, a least rate, a budget; from hopeless to generous."""
    objective = [Objective.PER_DOLLAR, Objective.CHEAPEST, Objective.FASTEST][int(rng.integers(3))]
    dearest = float(world.space.probe_usd.max())
    budget = dearest * float(10 ** rng.uniform(-0.5, 1.5)) if rng.random() < 0.5 else None
    caps = (world.latency(float(rng.uniform(0.05, 1.0))),) if rng.random() < 0.7 else ()
    rates = [cell.rate for cell in world.unseen.cells.values()]
    least = float(np.quantile(rates, rng.uniform(0, 0.9))) if rng.random() < 0.4 else None
    return world.job(Goal(objective, budget), caps, least, trials=int(rng.integers(1, 9)))
