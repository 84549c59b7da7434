"""Runs a job on markets: mostly on spot machines, and on time all the same.

The search has decided which machines. Where and how they are rented is decided again and again by a policy (`market/`),
under the hard rule of `market/guard.py`: what is left of the job can still be finished on demand, in time and within
the budget. The policy is asked when nothing is rented and, while the job runs, with its reports, twice in a `STEP_S`,
also while the job is silent: no work is counted on before the next look. A launch that it wants to leave ends as
`switched`: the job is asked to save, and goes on from there. A job that hangs on a spot machine goes on demand.

The work left is counted at the slow end of the measured rate, as a certificate counts it, and a changeover at the
longest start-up that was seen or is waited for. A zone that had no machines, or took them back, is not asked again at
once: the pause doubles with each refusal in a row. On-demand machines are asked for again at every step, in all zones;
where they were refused, now or in an earlier run, time is kept for the wait that was enough for most starts
(`market/fallback.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mlcd.core.configuration import Configuration, Space
from mlcd.core.forecasts import slow_rates
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.market import NO_DEADLINE, Market
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Step, Wait, Watch
from mlcd.planners.ready import run_ended
from mlcd.planners.train.capacity import (
    HOUR_S,
    LONGEST_PAUSE_S,
    STEP_S,
    fallback_of,
    looks,
    on_demand_looks,
    pausing,
    told,
)
from mlcd.planners.train.market.guard import Guarded
from mlcd.planners.train.market.leaving import Careful
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.protocol import Action, Held, Kind, Policy, State, Terms
from mlcd.planners.train.market.seen import Seen, before_the_run

SAVED_EVERY_S = 1_800.0
"""How much work a loss destroys at the most, where the job saves its work: nobody says how often it does."""
LEAVES_WITHIN_S = 120.0
"""How long a job may take to save its work before it is moved; less where machines start sooner."""


@dataclass(frozen=True)
class RunOnMarket:
    """Runs the job on the decided machines, wherever the policy rents them."""

    configuration: Configuration
    policy: Policy
    before: Seen = field(default_factory=Seen)
    """What is known of the zones from before this run."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Rent, wait, or say how it ended. `job` is what is left of it."""
        if not space.markets(self.configuration):  # no spot price of these machines is known
            from mlcd.planners.train.completion import RunToCompletion  # it needs SciPy, which is slow to import

            return RunToCompletion(self.configuration).next_step(job, space, history)
        last = history.current_runs[-1] if history.current_runs else None
        if last is not None and last.outcome is Outcome.OK:
            return run_ended(job, history, last)
        hangs = last is not None and last.outcome is Outcome.TIMED_OUT and history.rentals[-1].market.spot
        if last is not None and not (hangs or last.outcome is Outcome.SWITCHED or last.outcome.is_bad_luck):
            return Finish(f"the job ended: {last.ending}")
        state = self._state(job, space, history)
        action = Guarded(OnDemandOnly() if hangs else self.policy).decide(state)
        market = self._market(space, action, history.elapsed_s)
        if market is None:
            return Wait(_step_s(space), action.because or "nothing that is to be had is worth its price")
        watch, because = self._watch(job, space, history, market), f"{market}: {action.because}"
        saved_in = next((each.region for each in space.markets(self.configuration) if each.zone == state.saved_in), "")
        launched = replace(market, usd_per_launch=self._launch_usd(market, saved_in), move_usd=())
        return Apply(self.configuration, because, job.work_samples, watch, market=launched)

    def _launch_usd(self, market: Market, saved_in: str) -> float:
        """What a launch costs besides its time, with the checkpoint in a region. It is booked with the launch."""
        return self.configuration.rented(market).offer.usd_per_launch + market.moved_from(saved_in)

    def _market(self, space: Space, action: Action, now_s: float) -> Market | None:
        """The market of an action, as it is now; None: nothing is rented."""
        if action.kind in (Kind.HOLD, Kind.WAIT):
            return None
        spot = action.kind is Kind.SPOT
        offered = [each for each in space.markets(self.configuration) if each.spot is spot]
        return next(each.at(now_s) for each in offered if each.zone == action.zone)

    def _watch(self, job: Job, space: Space, history: History, market: Market) -> Watch:
        """Whether to leave what is rented."""
        asked, every_s = 0, _step_s(space) / 2  # reports come late: half a step is left for that

        def watch(so_far: Measurement) -> Outcome | None:
            nonlocal asked
            if so_far.seconds < asked * every_s or so_far.samples_done >= job.work_samples:
                return None
            asked = int(so_far.seconds // every_s) + 1
            action = Guarded(Careful(self.policy)).decide(self._state(job, space, history, market, so_far))
            wanted = self._market(space, action, history.elapsed_s + so_far.seconds)
            return None if action.kind is Kind.HOLD or market.is_same(wanted) else Outcome.SWITCHED

        return watch

    def _state(
        self,
        job: Job,
        space: Space,
        history: History,
        market: Market | None = None,
        so_far: Measurement | None = None,
    ) -> State:
        """What the policy is shown. `market`, `so_far`: of the launch that runs now."""
        terms, rate = self._terms(job, space, history)
        began_h = history.elapsed_s / HOUR_S
        up_h = so_far.seconds / HOUR_S if so_far is not None else 0.0
        done = so_far.samples_done if so_far is not None else 0.0
        saved = max(0.0, so_far.saved_samples - history.saved_samples) if so_far is not None else 0.0
        now_h = began_h + up_h
        markets = {each.zone: each for each in space.markets(self.configuration) if each.spot}
        prices = {zone: each.at(HOUR_S * now_h) for zone, each in markets.items()}
        spot = told(self.configuration, space, history, spot=True)
        held, seen = None, looks(spot, before_the_run(markets.values(), self.before))
        if market is not None and so_far is not None:
            # Until it is asked again the job may do nothing: it may start slowly, or hang.
            idle_h = max(terms.step_h, terms.changeover_h - up_h if done == 0 else 0.0)
            held = Held(market.zone, market.spot, began_h, idle_h)
            if market.spot:
                prices[market.zone] = market  # a launch keeps the price that it began with
                seen = seen.held(market.zone, began_h, now_h)
        unsaved = done - saved if job.checkpoints else done
        on_demand = told(self.configuration, space, history, spot=False)
        slack_h = terms.deadline_h - _begun_h(history) - terms.work_h - terms.changeover_h
        counted_on = fallback_of(on_demand, terms.zones, now_h, job.goal.confidence, slack_h)
        if counted_on is not None:
            terms = replace(terms, fallback_wait_h=counted_on.wait_h, fallback_zones=counted_on.zones)
        return State(
            terms,
            now_h,
            max(0.0, job.work_samples - done) / rate / HOUR_S,
            min(max(0.0, unsaved) / rate / HOUR_S, terms.checkpoint_h),
            history.spent_usd + (so_far.usd if so_far is not None else 0.0),
            held,
            market.zone if market is not None else self._saved_in(space, history),
            tuple(self.configuration.rented(prices[zone]).usd_per_hour for zone in terms.zones),
            seen,
            on_demand_looks(on_demand, now_h),
            pausing(spot, now_h, LONGEST_PAUSE_S, _step_s(space)),
        )

    def _terms(self, job: Job, space: Space, history: History) -> tuple[Terms, float]:
        """What does not change while the job runs, and the rate that its work is counted at, in samples a second."""
        measured = next(m for m in history.good if m.configuration == self.configuration)
        rate = slow_rates(job.goal.confidence, history)(measured)
        all_work = job.work_samples + history.saved_samples
        work_h = all_work / rate / HOUR_S
        starts = [run.startup_s for run in history.runs if run.ok]
        leaving_s = min(LEAVES_WITHIN_S, space.startup_limit_s) if job.checkpoints else 0.0
        changeover_h = (leaving_s + max([space.startup_limit_s, measured.startup_s, *starts])) / HOUR_S
        markets = space.markets(self.configuration)
        zones = tuple(each.zone for each in markets if each.spot)
        on_demand = {each.zone: each for each in markets if not each.spot}
        prices = tuple(self.configuration.rented(on_demand.get(zone)).usd_per_hour for zone in zones)
        deadline_h = NO_DEADLINE * (work_h + changeover_h) + _begun_h(history)
        if job.goal.deadline_s is not None:
            deadline_h = job.goal.deadline_s / HOUR_S
        checkpoint_h = min(work_h, SAVED_EVERY_S / HOUR_S) if job.checkpoints else work_h
        terms = Terms(zones, deadline_h, work_h, changeover_h, _step_s(space) / HOUR_S, prices, None, checkpoint_h)
        return self._with_fees(terms, job, space, history), rate

    def _with_fees(self, terms: Terms, job: Job, space: Space, history: History) -> Terms:
        """With the budget, and what launches cost besides their time, which is counted as the fee of a move.

        With no checkpoint yet nothing is moved: what the first launch costs is taken off the budget until it is over.
        """
        markets = [each for each in space.markets(self.configuration) if each.spot]
        fees = tuple(tuple(self._launch_usd(to, origin.region) for to in markets) for origin in markets)
        budget_usd = job.goal.budget_usd
        if budget_usd is not None and self._saved_in(space, history) is None:
            budget_usd -= max(self._launch_usd(each, "") for each in markets)
        return replace(terms, budget_usd=budget_usd, move_usd=fees if np.any(fees) else None)

    def _saved_in(self, space: Space, history: History) -> str | None:
        """The zone of the last launch; before the first, one of the region where probes have saved work."""
        came = [rental.market.zone for rental in history.rentals if rental.came]
        if came or not history.saved_samples:
            return came[-1] if came else None
        probed = self.configuration.offer.region
        return next((each.zone for each in space.markets(self.configuration) if each.region == probed), None)


def _begun_h(history: History) -> float:
    """When the job itself was first launched, or is about to be."""
    return min((each.began_s for each in history.rentals), default=history.elapsed_s) / HOUR_S


def _step_s(space: Space) -> float:
    """The longest time between two decisions."""
    return min(STEP_S, space.startup_limit_s or STEP_S)
