"""What a market policy is shown of a run, from its history.

The work left is counted at the slow end of the measured rate, as a certificate counts it, and a changeover at the
longest start-up that was seen or is waited for. A zone that had no machines, or took them back, is not asked again at
once: the pause doubles with each refusal in a row. On-demand machines are asked for again at every step, in all zones;
where they were refused, now or in an earlier run, time is kept for the wait that was enough for most starts
(`market/fallback.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mlcd.core.configuration import Configuration, Space
from mlcd.core.forecasts import certified_rates
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.market import NO_DEADLINE, Market
from mlcd.core.measurement import Measurement
from mlcd.planners.train.capacity import (
    HOUR_S,
    LONGEST_PAUSE_S,
    STEP_S,
    fallback_of,
    informative_launches,
    observations_from,
    on_demand_observations,
    paused_zones,
)
from mlcd.planners.train.market.protocol import Held, State, Terms
from mlcd.planners.train.market.seen import Seen, before_the_run

SAVED_EVERY_S = 1_800.0
"""How much work a loss destroys at the most, where the job saves its work: nobody says how often it does."""
LEAVES_WITHIN_S = 120.0
"""How long a job may take to save its work before it is moved; less where machines start sooner."""


@dataclass(frozen=True)
class MarketState:
    """A run of the decided machines, between two launches. `job` is what is left of it."""

    configuration: Configuration
    job: Job
    space: Space
    history: History

    @property
    def step_s(self) -> float:
        """The longest time between two decisions."""
        return min(STEP_S, self.space.startup_limit_s or STEP_S)

    @cached_property
    def spot(self) -> dict[str, Market]:
        """The spot market of each zone."""
        return {each.zone: each for each in self.space.markets(self.configuration) if each.spot}

    def launch_usd(self, market: Market, saved_in: str) -> float:
        """What a launch costs besides its time, with the checkpoint in a region. It is booked with the launch."""
        return self.configuration.rented(market).offer.usd_per_launch + market.moved_from(saved_in)

    def now(self) -> State:
        """With nothing rented."""
        now_h = self.history.elapsed_s / HOUR_S
        return self._state(now_h, self.job.work_samples, 0.0, self.history.spent_usd, None, self.saved_in)

    def during(self, market: Market, so_far: Measurement) -> State:
        """While a launch runs that has come so far."""
        terms, began_h, up_h = self.terms, self.history.elapsed_s / HOUR_S, so_far.seconds / HOUR_S
        done = so_far.samples_done
        saved = max(0.0, so_far.saved_samples - self.history.saved_samples) if self.job.checkpoints else 0.0
        starting_h = max(0.0, terms.changeover_h - up_h) if done == 0 else 0.0
        held = Held(market.zone, market.spot, began_h, starting_h, idle_h=terms.step_h)
        spent_usd = self.history.spent_usd + so_far.usd
        left, unsaved = max(0.0, self.job.work_samples - done), max(0.0, done - saved)
        state = self._state(began_h + up_h, left, unsaved, spent_usd, held, market.zone)
        if not market.spot:
            return state
        own_usd_h = self.configuration.rented(market).usd_per_hour  # a launch keeps the price that it began with
        prices = zip(terms.zones, state.spot_usd_h, strict=True)
        return replace(
            state,
            spot_usd_h=tuple(own_usd_h if zone == market.zone else usd_h for zone, usd_h in prices),
            seen=state.seen.held(market.zone, began_h, began_h + up_h),
        )

    def _state(
        self, now_h: float, left: float, unsaved: float, spent_usd: float, held: Held | None, saved_in: str | None
    ) -> State:
        """`left`, `unsaved`: samples."""
        spot = informative_launches(self.configuration, self.space, self.history, spot=True)
        on_demand = informative_launches(self.configuration, self.space, self.history, spot=False)
        terms = self.terms
        slack_h = terms.deadline_h - self._begun_h - terms.work_h - terms.changeover_h
        counted_on = fallback_of(on_demand, terms.zones, now_h, self.job.goal.confidence, slack_h)
        if counted_on is not None:
            terms = replace(terms, fallback_wait_h=counted_on.wait_h, fallback_zones=counted_on.zones)
        rented = [self.configuration.rented(self.spot[zone].at(HOUR_S * now_h)) for zone in terms.zones]
        return State(
            terms,
            now_h,
            left / self._samples_per_h,
            min(unsaved / self._samples_per_h, terms.checkpoint_h),
            spent_usd,
            held,
            saved_in,
            tuple(each.usd_per_hour for each in rented),
            observations_from(spot, before_the_run(self.spot.values(), Seen())),
            on_demand_observations(on_demand, now_h),
            paused_zones(spot, now_h, LONGEST_PAUSE_S, self.step_s),
        )

    @cached_property
    def _measured(self) -> Measurement:
        return next(m for m in self.history.good if m.configuration == self.configuration)

    @cached_property
    def _samples_per_h(self) -> float:
        """The rate that work is counted at."""
        return certified_rates(self.job.goal.confidence, self.history)(self._measured) * HOUR_S

    @cached_property
    def terms(self) -> Terms:
        """What does not change while the job runs."""
        job, history, limit_s = self.job, self.history, self.space.startup_limit_s
        work_h = (job.work_samples + history.saved_samples) / self._samples_per_h
        starts = [run.startup_s for run in history.runs if run.ok]
        leaving_s = min(LEAVES_WITHIN_S, limit_s) if job.checkpoints else 0.0
        changeover_h = (leaving_s + max([limit_s, self._measured.startup_s, *starts])) / HOUR_S
        on_demand = {each.zone: each for each in self.space.markets(self.configuration) if not each.spot}
        prices = tuple(self.configuration.rented(on_demand.get(zone)).usd_per_hour for zone in self.spot)
        deadline_h = NO_DEADLINE * (work_h + changeover_h) + self._begun_h
        if job.goal.deadline_s is not None:
            deadline_h = job.goal.deadline_s / HOUR_S
        checkpoint_h = min(work_h, SAVED_EVERY_S / HOUR_S) if job.checkpoints else work_h
        step_h = self.step_s / HOUR_S
        terms = Terms(tuple(self.spot), deadline_h, work_h, changeover_h, step_h, prices, None, checkpoint_h)
        return self._with_fees(terms)

    def _with_fees(self, terms: Terms) -> Terms:
        """With the budget, and what launches cost besides their time, which is counted as the fee of a move.

        With no checkpoint yet nothing is moved: what the first launch costs is taken off the budget until it is over.
        """
        markets = self.spot.values()
        fees = tuple(tuple(self.launch_usd(to, origin.region) for to in markets) for origin in markets)
        budget_usd = self.job.goal.budget_usd
        if budget_usd is not None and self.saved_in is None:
            budget_usd -= max(self.launch_usd(each, "") for each in markets)
        return replace(terms, budget_usd=budget_usd, move_usd=fees if np.any(fees) else None)

    @cached_property
    def saved_in(self) -> str | None:
        """The zone of the last launch; before the first, one of the region where probes have saved work."""
        came = [rental.market.zone for rental in self.history.rentals if rental.came]
        if came or not self.history.saved_samples:
            return came[-1] if came else None
        probed = self.configuration.offer.region
        return next((each.zone for each in self.space.markets(self.configuration) if each.region == probed), None)

    @property
    def _begun_h(self) -> float:
        """When the job itself was first launched, or is about to be."""
        return min((each.began_s for each in self.history.rentals), default=self.history.elapsed_s) / HOUR_S
