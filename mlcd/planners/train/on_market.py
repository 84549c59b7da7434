"""Runs a decided job on spot markets where that is cheaper, and still on time.

The search has decided which machines the job uses. Where and how they are rented is decided again and again by a policy
(`market/`), under the hard rule of `market/guard.py`: on-demand machines can still finish the job in time and within
the budget. The policy is asked when nothing is rented, and twice in each step while the job runs, even if the job is
silent: work between two decisions is not counted on. Its state comes from `market_state.py`.

A launch that the policy wants to leave ends as `switched`: the job is asked to save its work, and continues from there.
A job that hangs on a spot machine goes on demand.
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
from mlcd.planners.train.market.guard import apply_guard, is_safe
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.protocol import Action, Kind, Policy, State
from mlcd.planners.train.market.switching import avoid_risky_switch
from mlcd.planners.train.market_state import MarketState


@dataclass(frozen=True)
class RunOnMarket:
    """Runs the job on the decided machines, in the markets that the policy chooses. `search`: as in `completion.py`."""

    configuration: Configuration
    policy: Policy
    search: Strategy | None = None

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Launch, wait, or finish. `job` is what is left of it."""
        if not space.markets(self.configuration):  # no spot price of these machines is known
            from mlcd.planners.train.completion import RunToCompletion  # it needs SciPy, which is slow to import

            return RunToCompletion(self.configuration, self.search).next_step(job, space, history)
        last = history.current_runs[-1] if history.current_runs else None
        if last is not None and last.outcome is Outcome.OK:
            return finish_of_run(job, history, last)
        hung_on_spot = last is not None and last.outcome is Outcome.TIMED_OUT and history.rentals[-1].market.spot
        if last is not None and not (hung_on_spot or last.outcome is Outcome.SWITCHED or last.outcome.is_bad_luck):
            return Finish(f"the job ended: {last.ending}")
        run = MarketState(self.configuration, job, space, history)
        state, policy = run.now(), OnDemandOnly() if hung_on_spot else self.policy
        action = apply_guard(state, policy.decide(state))
        if action.kind in (Kind.HOLD, Kind.WAIT) and not _is_worth_waiting(state):
            action = apply_guard(state, OnDemandOnly().decide(state))
        market = self._market(space, action, history.elapsed_s)
        if market is None:
            return Wait(run.step_s, action.because or "no available machine is worth its price")
        checkpoint_region = run.spot[run.checkpoint_zone].region if run.checkpoint_zone is not None else ""
        launched = replace(market, usd_per_launch=run.launch_usd(market, checkpoint_region), move_usd=())
        because = f"{market}: {action.because}"
        return Apply(self.configuration, because, job.work_samples, self._watch(run, market), market=launched)

    def _market(self, space: Space, action: Action, now_s: float) -> Market | None:
        """The market of an action, at its current price; None if the action rents nothing."""
        if action.kind in (Kind.HOLD, Kind.WAIT):
            return None
        spot = action.kind is Kind.SPOT
        offered = [each for each in space.markets(self.configuration) if each.spot is spot]
        return next(each.at(now_s) for each in offered if each.zone == action.zone)

    def _watch(self, run: MarketState, market: Market) -> Watch:
        """A function that says, at each report of the job, whether to leave this launch."""
        times_asked, every_s = 0, run.step_s / 2  # half a step, since reports may be late

        def watch(so_far: Measurement) -> Outcome | None:
            nonlocal times_asked
            if so_far.seconds < times_asked * every_s or so_far.samples_done >= run.job.work_samples:
                return None
            times_asked = int(so_far.seconds // every_s) + 1
            state = run.during(market, so_far)
            action = apply_guard(state, avoid_risky_switch(state, self.policy.decide(state)))
            wanted = self._market(run.space, action, run.history.elapsed_s + so_far.seconds)
            return None if action.kind is Kind.HOLD or market.is_same(wanted) else Outcome.SWITCHED

        return watch


def _is_worth_waiting(state: State) -> bool:
    """Whether the guard would allow a spot launch anywhere at the next decision. If not, it never will again: with
    nothing held, slack only shrinks."""
    later = replace(state, now_h=state.now_h + state.terms.step_h)
    return any(is_safe(later, Action(Kind.SPOT, zone)) for zone in state.terms.zones)
