"""Replays policies on windows of recorded markets, with the offline optimum of each window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import ceil, floor

from mlcd.clouds.market_traces import TracedMarket as Market
from mlcd.planners.train.market import (
    CostToGo,
    Greedy,
    Guarded,
    Observations,
    OnDemandOnly,
    Pace,
    Policy,
    Terms,
    UniformProgress,
    observations_from_table,
)
from mlcd_bench.spot.optimum import optima
from mlcd_bench.spot.simulate import RecordedConditions, play, whole_ticks

POLICIES = ("cost-to-go", "pace", "uniform-progress", "uniform-progress-single", "greedy", "on-demand")


@dataclass(frozen=True)
class Setting:
    """Windows, deadlines and changeovers of the jobs."""

    window_h: float = 48.0
    """The deadline, and the length of a window of the trace."""
    stride_h: float = 12.0
    """From the start of a window to the start of the next."""
    history_h: float = 0.0
    """How much of the trace before a window the policies know. Windows start only after that much of it."""
    ratios: tuple[float, ...] = (1.05, 1.1, 1.25, 1.5, 2.0)
    """Deadline over work."""
    changeovers_min: tuple[float, ...] = (3.0, 12.0, 30.0)
    move_usd: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class Run:
    """One policy on one window. A JSON document has these fields."""

    set: str
    zones: tuple[str, ...]
    need: str
    start_tick: int
    deadline_h: float
    ratio: float
    changeover_min: float
    policy: str
    cost_usd: float
    optimum_usd: float
    on_demand_usd: float
    finished_h: float | None
    met: bool
    timeline: tuple[tuple[int, str | None, str], ...]

    @property
    def over_optimum(self) -> float:
        """Cost over the optimum."""
        return self.cost_usd / self.optimum_usd

    def document(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def starts(market: Market, setting: Setting) -> list[int]:
    """The rows of the market at which windows start."""
    length, before = floor(setting.window_h / market.tick_h + 1e-6), round(setting.history_h / market.tick_h)
    stride = max(1, round(setting.stride_h / market.tick_h))
    return list(range(before, len(market.up) - length + 1, stride))


def policy_named(name: str, market: Market, start: int) -> Policy:
    """The policy, under the guard."""
    if name == "pace":
        return Guarded(Pace())
    if name == "cost-to-go":
        return Guarded(CostToGo())
    if name == "greedy":
        return Guarded(Greedy())
    if name == "on-demand":
        return Guarded(OnDemandOnly())
    if name == "uniform-progress":
        return Guarded(UniformProgress())
    cheapest = min(range(len(market.zones)), key=lambda i: float(market.spot_usd_h[start, i]))
    return Guarded(UniformProgress(only_zone=market.zones[cheapest]))


def contest(market: Market, policies: Sequence[str], setting: Setting) -> Iterator[Run]:
    """All runs on one market: by window, changeover, ratio and policy."""
    for start, changeover_min in product(starts(market, setting), setting.changeovers_min):
        yield from window(market, policies, setting, start, changeover_min)


def has_time(market: Market, setting: Setting, ratio: float, changeover_min: float) -> bool:
    """Whether the work fits before the deadline, including the changeover of one launch."""
    terms = terms_of(market, setting, ratio, changeover_min)
    return ceil((terms.work_h + terms.changeover_h) / terms.step_h - 1e-6) <= whole_ticks(terms)


def terms_of(market: Market, setting: Setting, ratio: float, changeover_min: float) -> Terms:
    """The job. Its work is rounded to whole minutes."""
    return Terms(
        zones=market.zones,
        deadline_h=setting.window_h,
        work_h=round(setting.window_h / ratio * 60) / 60,
        changeover_h=changeover_min / 60,
        step_h=market.tick_h,
        on_demand_usd_h=market.on_demand_usd_h,
        move_usd=setting.move_usd,
    )


def history_of(market: Market, setting: Setting, start: int) -> Observations:
    """What the policies know before a window starts."""
    before = round(setting.history_h / market.tick_h)
    if not before:
        return Observations()
    return observations_from_table(market.zones, market.up[start - before : start].tolist(), market.tick_h)


def window(
    market: Market, policies: Sequence[str], setting: Setting, start: int, changeover_min: float
) -> Iterator[Run]:
    """All runs in one window with one changeover, by ratio and policy. Jobs that do not fit are skipped."""
    ratios = [ratio for ratio in setting.ratios if has_time(market, setting, ratio, changeover_min)]
    if not ratios:
        return
    jobs = [terms_of(market, setting, ratio, changeover_min) for ratio in ratios]
    length = whole_ticks(jobs[0])
    up, prices = market.up[start : start + length], market.spot_usd_h[start : start + length]
    best = optima(up, prices, jobs[0], [job.work_h for job in jobs])
    conditions, observations = RecordedConditions(up, prices), history_of(market, setting, start)
    for ratio, terms, optimum_usd in zip(ratios, jobs, best, strict=True):
        on_demand_usd = play(Guarded(OnDemandOnly()), conditions, terms).cost_usd
        for name in policies:
            played = play(policy_named(name, market, start), conditions, terms, observations)
            yield Run(
                market.set,
                market.zones,
                market.need,
                market.first_tick + start,
                setting.window_h,
                ratio,
                changeover_min,
                name,
                played.cost_usd,
                optimum_usd,
                on_demand_usd,
                played.finished_h,
                played.met,
                played.timeline,
            )
