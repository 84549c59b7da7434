"""Runs a job on markets: mostly on spot machines, and on time all the same.

The search has decided which machines. Where and how they are rented is decided again and again by a policy (`market/`),
under the hard rule of `market/guard.py`: what is left of the job can still be finished on demand, in time and within
the budget. The policy is asked when nothing is rented and, while the job runs, with its reports, every `STEP_S` at the
most. A launch that it wants to leave ends as `switched`, with all that is saved.

The work left is counted at the slow end of the measured rate, as a certificate counts it, and a changeover at the
longest start-up that was seen or is waited for. A zone that had no machines is not asked again at once: the pause
doubles with each refusal in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcd.core.configuration import Configuration, Space
from mlcd.core.forecasts import slow_rates
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.market import NO_DEADLINE, Market
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Step, Wait, Watch
from mlcd.planners.ready import run_ended
from mlcd.planners.train.market.guard import Guarded
from mlcd.planners.train.market.leaving import Careful
from mlcd.planners.train.market.protocol import Action, Held, Kind, Policy, State, Terms
from mlcd.planners.train.market.seen import TOLERANCE_H, Seen, before_the_run

STEP_S = 300.0
"""The policy is asked so often."""
SAVED_EVERY_S = 1_800.0
"""How much work a loss destroys at the most, where the job saves its work: nobody says how often it does."""
LONGEST_PAUSE_S = 3_600.0
HOUR_S = 3_600.0


@dataclass(frozen=True)
class RunOnMarket:
    """Runs the job on the decided machines, wherever the policy rents them."""

    configuration: Configuration
    policy: Policy
    before: Seen = field(default_factory=Seen)
    """What is known of the zones from before this run."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Rent, wait, or say how it ended. `job` is what is left of it."""
        if not space.markets(self.configuration):  # a type that is rented on demand alone
            from mlcd.planners.train.completion import RunToCompletion  # it needs SciPy, which is slow to import

            return RunToCompletion(self.configuration).next_step(job, space, history)
        last = history.current_runs[-1] if history.current_runs else None
        if last is not None and last.outcome is Outcome.OK:
            return run_ended(job, history, last)
        if last is not None and last.outcome is not Outcome.SWITCHED and not last.outcome.is_bad_luck:
            return Finish(f"the job ended: {last.ending}")
        state = self._state(job, space, history)
        action = Guarded(self.policy).decide(state)
        market = self._market(space, action, history.elapsed_s)
        if market is None:
            return Wait(STEP_S, action.because or "nothing that is to be had is worth its price")
        watch = self._watch(job, space, history, market)
        return Apply(self.configuration, f"{market}: {action.because}", job.work_samples, watch, market=market)

    def _market(self, space: Space, action: Action, now_s: float) -> Market | None:
        """The market of an action, as it is now; None: nothing is rented."""
        if action.kind in (Kind.HOLD, Kind.WAIT):
            return None
        spot = action.kind is Kind.SPOT
        offered = [each for each in space.markets(self.configuration) if each.spot is spot]
        return next(each.at(now_s) for each in offered if each.zone == action.zone)

    def _watch(self, job: Job, space: Space, history: History, market: Market) -> Watch:
        """Whether to leave what is rented."""
        asked = 0

        def watch(so_far: Measurement) -> Outcome | None:
            nonlocal asked
            if so_far.seconds < asked * STEP_S or so_far.samples_done >= job.work_samples:
                return None
            asked = int(so_far.seconds // STEP_S) + 1
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
        markets = {each.zone: each for each in space.markets(self.configuration) if each.spot}
        prices = {zone: each.at(HOUR_S * (began_h + up_h)) for zone, each in markets.items()}
        held, seen = None, _seen(before_the_run(markets.values(), self.before), history, began_h + up_h)
        if market is not None and so_far is not None:
            starting_h = max(0.0, terms.changeover_h - up_h) if done == 0 else 0.0
            held = Held(market.zone, market.spot, began_h, starting_h)
            if market.spot:
                prices[market.zone] = market  # a launch keeps the price that it began with
                seen = seen.looked(market.zone, True, began_h).looked(market.zone, True, began_h + up_h)
        unsaved = done - saved if job.checkpoints else done
        rentals = [each for each in history.rentals if each.came]
        return State(
            terms,
            began_h + up_h,
            max(0.0, job.work_samples - done) / rate / HOUR_S,
            min(max(0.0, unsaved) / rate / HOUR_S, terms.checkpoint_h),
            history.spent_usd + (so_far.usd if so_far is not None else 0.0),
            held,
            market.zone if market is not None else rentals[-1].market.zone if rentals else None,
            tuple(self.configuration.rented(prices[zone]).usd_per_hour for zone in terms.zones),
            seen,
        )

    def _terms(self, job: Job, space: Space, history: History) -> tuple[Terms, float]:
        """What does not change while the job runs, and the rate that its work is counted at, in samples a second."""
        measured = next(m for m in history.good if m.configuration == self.configuration)
        rate = slow_rates(job.goal.confidence, history)(measured)
        all_work = job.work_samples + history.saved_samples
        work_h = all_work / rate / HOUR_S
        starts = [run.startup_s for run in history.runs if run.ok]
        changeover_h = max([space.startup_limit_s, measured.startup_s, *starts]) / HOUR_S
        markets = space.markets(self.configuration)
        zones = tuple(each.zone for each in markets if each.spot)
        on_demand = {each.zone: each for each in markets if not each.spot}
        prices = tuple(self.configuration.rented(on_demand.get(zone)).usd_per_hour for zone in zones)
        deadline_h = NO_DEADLINE * (work_h + changeover_h) + _begun_h(history)
        if job.goal.deadline_s is not None:
            deadline_h = job.goal.deadline_s / HOUR_S
        checkpoint_h = min(work_h, SAVED_EVERY_S / HOUR_S) if job.checkpoints else work_h
        terms = Terms(
            zones, deadline_h, work_h, changeover_h, STEP_S / HOUR_S, prices, job.goal.budget_usd, checkpoint_h
        )
        return terms, rate


def _begun_h(history: History) -> float:
    """When the job itself was first launched, or is about to be."""
    return min((each.began_s for each in history.rentals), default=history.elapsed_s) / HOUR_S


def _seen(before: Seen, history: History, now_h: float) -> Seen:
    """With what the launches of this run have shown of the spot market. A zone that is in its pause counts as empty."""
    seen, pauses = before, dict[str, tuple[int, float]]()
    for rental in history.rentals:
        if rental.market.spot:
            zone, ended_h = rental.market.zone, rental.ended_s / HOUR_S
            seen = seen.looked(zone, rental.came, rental.began_s / HOUR_S)
            if rental.came:
                seen = seen.looked(zone, not rental.taken_back, ended_h)
            refusals = 0 if rental.came else pauses.get(zone, (0, 0.0))[0] + 1
            pauses[zone] = refusals, ended_h + min(LONGEST_PAUSE_S, STEP_S * 2 ** (refusals - 1)) / HOUR_S
    for zone, (refusals, until_h) in pauses.items():
        if refusals and now_h < until_h - TOLERANCE_H:
            seen = seen.looked(zone, False, now_h)
    return seen
