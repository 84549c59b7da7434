"""Runs a job on markets: mostly on spot machines, and on time all the same.

The search has decided which machines. Where and how they are rented is decided again and again by a policy (`market/`),
under the hard rule of `market/guard.py`: what is left of the job can still be finished on demand, in time and within
the budget. The policy is asked when nothing is rented and, while the job runs, with its reports, twice in a step, also
while the job is silent: no work is counted on before the next look. What it is shown: `market_state.py`.

A launch that it wants to leave ends as `switched`: the job is asked to save, and goes on from there. A job that hangs
on a spot machine goes on demand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlcd.core.configuration import Configuration, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Step, Strategy, Wait, Watch
from mlcd.planners.job_checks import finish_of_run
from mlcd.planners.train.market.guard import guarded, is_safe
from mlcd.planners.train.market.leaving import careful
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.protocol import Action, Kind, Policy, State
from mlcd.planners.train.market_state import MarketState


@dataclass(frozen=True)
class RunOnMarket:
    """Runs the job on the decided machines, wherever the policy rents them. `search`: as in `completion.py`."""

    configuration: Configuration
    policy: Policy
    search: Strategy | None = None

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Rent, wait, or say how it ended. `job` is what is left of it."""
        if not space.markets(self.configuration):  # no spot price of these machines is known
            from mlcd.planners.train.completion import RunToCompletion  # it needs SciPy, which is slow to import

            return RunToCompletion(self.configuration, self.search).next_step(job, space, history)
        last = history.current_runs[-1] if history.current_runs else None
        if last is not None and last.outcome is Outcome.OK:
            return finish_of_run(job, history, last)
        hangs = last is not None and last.outcome is Outcome.TIMED_OUT and history.rentals[-1].market.spot
        if last is not None and not (hangs or last.outcome is Outcome.SWITCHED or last.outcome.is_bad_luck):
            return Finish(f"the job ended: {last.ending}")
        run = MarketState(self.configuration, job, space, history)
        state, policy = run.now(), OnDemandOnly() if hangs else self.policy
        action = guarded(state, policy.decide(state))
        if action.kind in (Kind.HOLD, Kind.WAIT) and not _is_worth_waiting(state):
            action = guarded(state, OnDemandOnly().decide(state))
        market = self._market(space, action, history.elapsed_s)
        if market is None:
            return Wait(run.step_s, action.because or "nothing that is to be had is worth its price")
        saved_in = run.spot[run.saved_in].region if run.saved_in is not None else ""
        launched = replace(market, usd_per_launch=run.launch_usd(market, saved_in), move_usd=())
        because = f"{market}: {action.because}"
        return Apply(self.configuration, because, job.work_samples, self._watch(run, market), market=launched)

    def _market(self, space: Space, action: Action, now_s: float) -> Market | None:
        """The market of an action, as it is now; None: nothing is rented."""
        if action.kind in (Kind.HOLD, Kind.WAIT):
            return None
        spot = action.kind is Kind.SPOT
        offered = [each for each in space.markets(self.configuration) if each.spot is spot]
        return next(each.at(now_s) for each in offered if each.zone == action.zone)

    def _watch(self, run: MarketState, market: Market) -> Watch:
        """Whether to leave what is rented."""
        asked, every_s = 0, run.step_s / 2  # reports come late: half a step is left for that

        def watch(so_far: Measurement) -> Outcome | None:
            nonlocal asked
            if so_far.seconds < asked * every_s or so_far.samples_done >= run.job.work_samples:
                return None
            asked = int(so_far.seconds // every_s) + 1
            state = run.during(market, so_far)
            action = guarded(state, careful(state, self.policy.decide(state)))
            wanted = self._market(run.space, action, run.history.elapsed_s + so_far.seconds)
            return None if action.kind is Kind.HOLD or market.is_same(wanted) else Outcome.SWITCHED

        return watch


def _is_worth_waiting(state: State) -> bool:
    """Whether the guard allows spot machines anywhere at the next decision. With nothing held there is less time at
    each one, so if it does not then, it never does again."""
    later = replace(state, now_h=state.now_h + state.terms.step_h)
    return any(is_safe(later, Action(Kind.SPOT, zone)) for zone in state.terms.zones)
