"""The state of a run that a market policy sees, computed from the run's history.

Work left is counted at the lower confidence bound of the measured rate, as in a certificate, and a changeover as the
longest start-up that was measured or is allowed. A zone whose launch failed or whose machines were preempted is paused:
the pause doubles with each failure in a row. On-demand machines are tried again in all zones at every step. If such a
launch failed, now or in an earlier run, time is reserved for a wait that is long enough with the requested confidence
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
from mlcd.planners.train.launch_observations import (
    HOUR_S,
    LONGEST_PAUSE_S,
    STEP_S,
    fallback_of,
    informative_launches,
    observations_from,
    on_demand_observations,
    paused_zones,
)
from mlcd.planners.train.market.observations import Observations, add_market_history
from mlcd.planners.train.market.protocol import HeldMachines, State, Terms

CHECKPOINT_EVERY_S = 1_800.0
"""The most work that a preemption destroys if the job saves checkpoints: an assumption, since no job states it."""
SAVE_BEFORE_MOVE_S = 120.0
"""How long a job may take to save its work before it moves; less where machines start faster."""


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
        """Spot markets by zone."""
        return {each.zone: each for each in self.space.markets(self.configuration) if each.spot}

    def launch_usd(self, market: Market, checkpoint_region: str) -> float:
        """The cost of a launch besides its time, with the checkpoint in that region. Booked with the launch."""
        return self.configuration.rented(market).offer.usd_per_launch + market.moved_from(checkpoint_region)

    def now(self) -> State:
        """The state with nothing rented."""
        now_h = self.history.elapsed_s / HOUR_S
        return self._state(now_h, self.job.work_samples, 0.0, self.history.spent_usd, None, self.checkpoint_zone)

    def during(self, market: Market, so_far: Measurement) -> State:
        """The state while a launch runs."""
        terms, began_h, up_h = self.terms, self.history.elapsed_s / HOUR_S, so_far.seconds / HOUR_S
        done = so_far.samples_done
        saved = max(0.0, so_far.saved_samples - self.history.saved_samples) if self.job.checkpoints else 0.0
        starting_h = max(0.0, terms.changeover_h - up_h) if done == 0 else 0.0
        held = HeldMachines(market.zone, market.spot, began_h, starting_h, idle_h=terms.step_h)
        spent_usd = self.history.spent_usd + so_far.usd
        left, unsaved = max(0.0, self.job.work_samples - done), max(0.0, done - saved)
        state = self._state(began_h + up_h, left, unsaved, spent_usd, held, market.zone)
        if not market.spot:
            return state
        own_usd_h = self.configuration.rented(market).usd_per_hour  # a launch keeps its initial price
        prices = zip(terms.zones, state.spot_usd_h, strict=True)
        return replace(
            state,
            spot_usd_h=tuple(own_usd_h if zone == market.zone else usd_h for zone, usd_h in prices),
            observations=state.observations.with_held_machine(market.zone, began_h, began_h + up_h),
        )

    def _state(
        self,
        now_h: float,
        left: float,
        unsaved: float,
        spent_usd: float,
        held: HeldMachines | None,
        checkpoint_zone: str | None,
    ) -> State:
        """`left`, `unsaved`: samples."""
        spot = informative_launches(self.configuration, self.space, self.history, spot=True)
        on_demand = informative_launches(self.configuration, self.space, self.history, spot=False)
        terms = self.terms
        slack_h = terms.deadline_h - self._began_h - terms.work_h - terms.changeover_h
        fallback = fallback_of(on_demand, terms.zones, now_h, self.job.goal.confidence, slack_h)
        if fallback is not None:
            terms = replace(terms, fallback_wait_h=fallback.wait_h, fallback_zones=fallback.zones)
        rented = [self.configuration.rented(self.spot[zone].at(HOUR_S * now_h)) for zone in terms.zones]
        return State(
            terms,
            now_h,
            left / self._samples_per_h,
            min(unsaved / self._samples_per_h, terms.checkpoint_h),
            spent_usd,
            held,
            checkpoint_zone,
            tuple(each.usd_per_hour for each in rented),
            observations_from(spot, add_market_history(self.spot.values(), Observations())),
            on_demand_observations(on_demand, now_h),
            paused_zones(spot, now_h, LONGEST_PAUSE_S, self.step_s),
        )

    @cached_property
    def _measured(self) -> Measurement:
        return next(m for m in self.history.good if m.configuration == self.configuration)

    @cached_property
    def _samples_per_h(self) -> float:
        """The rate at which work is counted."""
        return certified_rates(self.job.goal.confidence, self.history)(self._measured) * HOUR_S

    @cached_property
    def terms(self) -> Terms:
        """What does not change while the job runs."""
        job, history, limit_s = self.job, self.history, self.space.startup_limit_s
        work_h = (job.work_samples + history.saved_samples) / self._samples_per_h
        starts = [run.startup_s for run in history.runs if run.ok]
        saving_s = min(SAVE_BEFORE_MOVE_S, limit_s) if job.checkpoints else 0.0
        changeover_h = (saving_s + max([limit_s, self._measured.startup_s, *starts])) / HOUR_S
        on_demand = {each.zone: each for each in self.space.markets(self.configuration) if not each.spot}
        prices = tuple(self.configuration.rented(on_demand.get(zone)).usd_per_hour for zone in self.spot)
        deadline_h = NO_DEADLINE * (work_h + changeover_h) + self._began_h
        if job.goal.deadline_s is not None:
            deadline_h = job.goal.deadline_s / HOUR_S
        checkpoint_h = min(work_h, CHECKPOINT_EVERY_S / HOUR_S) if job.checkpoints else work_h
        step_h = self.step_s / HOUR_S
        terms = Terms(tuple(self.spot), deadline_h, work_h, changeover_h, step_h, prices, None, checkpoint_h)
        return self._with_fees(terms)

    def _with_fees(self, terms: Terms) -> Terms:
        """With the budget and the costs of launches besides their time, which count as fees for moving the checkpoint.

        Before the first checkpoint nothing is moved: the cost of the first launch is subtracted from the budget.
        """
        markets = self.spot.values()
        fees = tuple(tuple(self.launch_usd(to, origin.region) for to in markets) for origin in markets)
        budget_usd = self.job.goal.budget_usd
        if budget_usd is not None and self.checkpoint_zone is None:
            budget_usd -= max(self.launch_usd(each, "") for each in markets)
        return replace(terms, budget_usd=budget_usd, move_usd=fees if np.any(fees) else None)

    @cached_property
    def checkpoint_zone(self) -> str | None:
        """The zone of the last launch; before the first one, a zone of the region in which probes saved work."""
        zones = [rental.market.zone for rental in self.history.rentals if rental.came]
        if zones or not self.history.saved_samples:
            return zones[-1] if zones else None
        region = self.configuration.offer.region
        return next((each.zone for each in self.space.markets(self.configuration) if each.region == region), None)

    @property
    def _began_h(self) -> float:
        """When the job itself was first launched, or now if it was not."""
        return min((each.began_s for each in self.history.rentals), default=self.history.elapsed_s) / HOUR_S
