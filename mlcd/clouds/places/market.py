"""`--on market:DIR` and `market:DIR@TIME`: recorded speeds on a recorded spot market, replayed from TIME on."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from mlcd.clouds.market_folder import FILE, MarketFolder, load_market_folder
from mlcd.clouds.recorded import Recorded
from mlcd.clouds.replayed_market import ReplayedMarket, Trace
from mlcd.clouds.simulated_speeds import market_with_simulated_speeds
from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Configuration
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.place import Cloud, unknown_place
from mlcd.core.planner import DEFAULT_PLANNER
from mlcd.core.units import parse_duration
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.launch_observations import STEP_S
from mlcd.planners.train.market.expected_cost import with_expected_spot_costs
from mlcd.planners.train.space import narrow, spot_of


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The cloud of the market in folder `rest`."""
    if not rest:
        raise unknown_place("market")
    folder, start_s = _folder_and_start_s(rest)
    bare = not (folder / FILE).exists() and (folder / "traces.csv").exists()
    market = market_with_simulated_speeds(folder, job) if bare else load_market_folder(folder)
    return market_cloud(market, job, start_s, elapsed_s)


def market_cloud(folder: MarketFolder, job: Job, start_s: float = 0.0, elapsed_s: float = 0.0) -> Cloud:
    """The cloud of this market, replayed from `start_s` of the trace on."""
    if job.ask is not None and job.ask.planner != DEFAULT_PLANNER:
        raise UserError(f"market: is for `mlcd train`; for `mlcd {job.ask.planner}` there is recorded:DIR")
    if spot_of(job):
        raise UserError("use_spot: true is not possible on market:; use any (spot or on demand) or false (on demand)")
    clock = VirtualClock(elapsed_s)
    detail = "as on the simulated cloud" if folder.made_up else "as recorded"
    startup_s = folder.changeover_s
    recorded = Recorded(folder.recording, clock, startup_s=startup_s, report_every_s=STEP_S, failure_detail=detail)
    traces = {each: Trace(market, start_s) for each, market in folder.markets.items()}
    space = narrow(replace(folder.recording.space, startup_limit_s=folder.changeover_s), job)
    if spot_of(job) is None:
        space = replace(space, choices=tuple(_with_markets(each, traces, folder, job) for each in space.choices))
        if not any(choice.markets for choice in space.choices):
            raise UserError("use_spot: any: these types and zones have no spot market here; see market.yaml")
        space = with_expected_spot_costs(space, checkpoints=job.checkpoints)
    backend = ReplayedMarket(recorded, traces, Provenance.SIMULATED if folder.made_up else Provenance.RECORDED)
    profiler = TrainingProfiler(backend, noise_floor=0.01, tight=None, warm_up=False)
    return Cloud(space, backend, profiler, clock)


def _with_markets(choice: Choice, traces: dict[Configuration, Trace], folder: MarketFolder, job: Job) -> Choice:
    """Add the markets of its node counts. Node counts with the same trace share their markets."""
    same: dict[str, list[int]] = {}
    for nodes in choice.nodes:
        if (trace := traces.get(Configuration(choice.offer, nodes))) is not None:
            same.setdefault(trace.market.name, []).append(nodes)
    markets: list[Market] = []
    for counts in same.values():
        trace = traces[Configuration(choice.offer, counts[0])]
        markets += _in_zones(
            trace.markets(choice.offer.usd_per_hour, tuple(counts), folder.history_s), job.search.zones
        )
    return replace(choice, markets=tuple(markets))


def _in_zones(markets: Iterable[Market], zones: tuple[str, ...]) -> list[Market]:
    return [each for each in markets if not zones or each.zone in zones]


def _folder_and_start_s(rest: str) -> tuple[Path, float]:
    """Split DIR@TIME into the folder, and the seconds of the trace at which the run begins."""
    folder, _, start = rest.rpartition("@")
    if not folder or Path(rest).exists():
        return Path(rest), 0.0
    try:
        return Path(folder), 0.0 if start in ("0", "0h") else parse_duration(start)
    except ValueError as error:
        raise UserError(f"market:{rest}: the time after @ is where in the trace the run begins: {error}") from None
