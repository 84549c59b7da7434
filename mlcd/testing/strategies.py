"""Contract tests for strategies. Subclass the contract, and define how to make your strategy:

class TestHeterBO(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return HeterBO()
"""

from dataclasses import replace

import numpy as np
import pytest

from mlcd.clouds.recording import Recording
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.ledger import Reserved
from mlcd.core.measurement import Outcome
from mlcd.core.strategy import Finish, Probe, Round, Strategy
from mlcd.testing.clouds import bounded_cloud, job_on, random_goal, random_recording, small_recording
from mlcd.testing.promises import check_promises, search_and_run

NOISE = 0.03
RISING = (10.0, 19.0, 27.0, 34.0)
PEAKED = (50.0, 80.0, 60.0, 40.0)
FAILING = (None, None, 90.0, 120.0)


class StrategyContract:
    """The contract of every strategy."""

    picks_the_best = True
    """True if the strategy leaves the choice to the guarantee; False if it names its own pick."""

    def strategy(self, seed: int) -> Strategy:
        raise NotImplementedError

    @pytest.mark.parametrize(
        "goal",
        [
            Goal(),
            Goal(Objective.CHEAPEST),
            Goal(Objective.CHEAPEST, deadline_s=30_000),
            Goal(Objective.FASTEST, budget_usd=60),
            Goal(Objective.FASTEST, budget_usd=60, deadline_s=40_000),
            Goal(Objective.FASTEST, budget_usd=0.5),
            Goal(Objective.CHEAPEST, deadline_s=60),
        ],
        ids=str,
    )
    def test_it_keeps_every_promise_under_every_kind_of_goal(self, goal: Goal) -> None:
        recording = small_recording([RISING, PEAKED, FAILING], [0.5, 2.0, 6.0])
        self._check(recording, goal, 0)

    @pytest.mark.parametrize("seed", range(20))
    def test_it_keeps_every_promise_on_random_clouds(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        recording = random_recording(rng)
        self._check(recording, random_goal(rng, recording), seed)

    def test_it_finishes_when_nothing_can_run_the_job(self) -> None:
        recording = small_recording([[None, None], [None, 1.0]], [1.0, 2.0])
        dead = {c: p for c, p in recording.points.items() if p.outcome is not Outcome.OK}
        recording = replace(recording, points=dead)
        job = job_on(recording)
        ledger, run, decision = search_and_run(self.strategy(0), job, bounded_cloud(recording, 0.0, 0))
        assert decision.configuration is None
        check_promises(self.strategy(0), job, ledger.lines(run))

    def test_it_finishes_on_a_space_of_one(self) -> None:
        recording = small_recording([[5.0]], [1.0])
        self._check(recording, Goal(), 0)

    def test_it_probes_nothing_twice_while_probes_are_whole(self) -> None:
        recording = small_recording([RISING, PEAKED, FAILING], [0.5, 2.0, 6.0])
        job = job_on(recording)
        ledger, run, _ = search_and_run(self.strategy(0), job, bounded_cloud(recording, NOISE, 0))
        probed = [
            line.entry.launch.configuration
            for line in ledger.lines(run)
            if isinstance(line.entry, Reserved) and line.entry.launch.purpose == "probe"
        ]
        assert len(probed) == len(set(probed))

    def test_its_first_step_needs_no_history_and_gives_a_reason(self) -> None:
        recording = small_recording([RISING], [0.5])
        step = self.strategy(0).next_step(job_on(recording), recording.space, History())
        assert isinstance(step, Probe | Round | Finish)
        assert (step.probes[0] if isinstance(step, Round) else step).because

    def _check(self, recording: Recording, goal: Goal, seed: int) -> None:
        job = job_on(recording, goal)
        ledger, run, _ = search_and_run(self.strategy(seed), job, bounded_cloud(recording, NOISE, seed))
        check_promises(self.strategy(seed), job, ledger.lines(run), best=self.picks_the_best)
