"""Choosing type, nodes and market together: total cost over an oracle that knows all speeds and the whole market.

python benchmarks/spot_and_type.py [--part tune|report] [--window-h 48 24] [--history-h 0 96] [--recordings NAME...]

How recordings and markets are joined. Speeds and on-demand prices come from ../shared/data/train, availability and
spot prices (as a share of on-demand prices) from ../shared/data/spot. The families of types of a recording (names up
to the first of '.-_'), in alphabetical order, get these markets in turn:

    first     one node: v100x1 in us-east-1a, 1c and 1f;             more: all of v100x16
    second    one node: any of h100x16;                              more: all of h100x16
    third     one node: v100x1 in us-east-2b, us-west-2a and 2c;     more: all of v100x4

So types differ in availability and spot price, and several nodes are scarcer than one. Of v100x1, the last of three
weeks is used, so every trace is a week. A changeover takes 3 minutes; a probe takes 10 minutes or more, on demand, as
recorded. `market_yaml` writes this as a folder that `mlcd train --on market:DIR@TIME` replays, so the runs take the
product's own path.

The job. `use_spot: any`, cheapest, with checkpoints. The recording's work is scaled so that the configuration that is
cheapest on demand takes window / 1.5. The window is the deadline. Work is counted in thousandths of recorded samples:
one of Scout's jobs has only a hundred samples, and a launch never does less than one.

The oracle makes no probes. Its cost is the offline optimum (`mlcd_bench/spot/optimum.py`) of the best configuration.
It pays whole ticks at the price of each tick; a run pays seconds at the price at the start of each launch.

Split. The first two thirds of each trace and every second recording are for tuning (`--part tune`); the reported
figures are of the last third and the other recordings. Baselines: `chosen on demand` chooses type and nodes by
on-demand prices and then runs on the markets as ours does; `on demand` uses no spot machine. Nothing here is random.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np

from mlcd.clouds.market_folder import MarketFolder, load_market_folder
from mlcd.clouds.market_traces import TracedMarket
from mlcd.clouds.recording import Recording, load_recording, save_recording
from mlcd.core.configuration import Configuration
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import Run, start
from mlcd.planners.train.market import Terms
from mlcd_bench.problems import job_of
from mlcd_bench.spot import optima

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
RATIO, CHANGEOVER_MIN, WEEK_H = 1.5, 3, 168
REPORTED_FROM_H = 2 * WEEK_H / 3
DECK = (
    ("trace: v100x1, from: 336h, zones: [us-east-1a, us-east-1c, us-east-1f]", "trace: v100x16, need: all"),
    ("trace: h100x16", "trace: h100x16, need: all"),
    ("trace: v100x1, from: 336h, zones: [us-east-2b, us-west-2a, us-west-2c]", "trace: v100x4, need: all"),
)
WAYS = ("ours", "chosen on demand", "on demand")


@dataclass(frozen=True)
class Outcome:
    """One job in one window, run in one of the `WAYS`."""

    recording: str
    start_h: float
    way: str
    chosen: Configuration | None
    best: Configuration
    usd: float
    probes_usd: float
    oracle_usd: float
    met: bool

    @property
    def over(self) -> float:
        """Cost over the oracle's."""
        return self.usd / self.oracle_usd


def recording_of(name: str) -> Recording:
    """A recording with work in thousandths of its samples."""
    recording = load_recording(SHARED / "train" / name)
    points = {
        c: replace(p, samples_per_s=p.samples_per_s and 1e3 * p.samples_per_s) for c, p in recording.points.items()
    }
    return replace(recording, points=points, work_samples=1e3 * recording.work_samples)


def market_yaml(recording: Recording, history_h: float) -> str:
    """The market of each type, as a `market.yaml`."""
    types = sorted(offer.instance_type for offer in recording.space.offers)
    families = sorted({re.split(r"[.\-_]", name)[0] for name in types})
    lines = [f"traces: {SHARED / 'spot'}", f"changeover: {CHANGEOVER_MIN}m", "markets:"]
    for number, family in enumerate(families):
        one, more = DECK[number % len(DECK)]
        lines += [f"  - {{types: '{family}*', nodes: 1, {one}}}", f"  - {{types: '{family}*', {more}}}"]
    return "\n".join([*lines, *([f"history: {history_h:g}h"] if history_h else [])])


def job_in(recording: Recording, window_h: float) -> Job:
    """The recorded job, with its work scaled to the window."""
    takes_s = {c: recording.work_samples / p.samples_per_s for c, p in recording.points.items() if p.samples_per_s}
    cheapest = min(takes_s, key=lambda each: each.usd(takes_s[each]))
    scale = window_h * 3_600 / RATIO / takes_s[cheapest]
    goal = Goal(Objective.CHEAPEST, deadline_s=window_h * 3_600)
    task = {"resources": {"use_spot": "any"}}
    job = replace(job_of(recording), work_samples=scale * recording.work_samples)
    return replace(job, goal=goal, task=task, checkpoints=True)


def oracle(folder: MarketFolder, job: Job, window_h: float, start_h: float) -> tuple[float, Configuration]:
    """The least cost of the job in this window, and its configuration."""
    rates = {c: p.samples_per_s for c, p in folder.recording.points.items() if p.samples_per_s}
    work_h = {c: job.work_samples / rate / 3_600 for c, rate in rates.items()}
    costs = {}
    for market in {id(each): each for each in folder.markets.values()}.values():
        here = [c for c in work_h if folder.markets.get(c) is market and work_h[c] <= window_h]
        for c, share in zip(here, _of_on_demand(market, window_h, start_h, [work_h[c] for c in here]), strict=True):
            costs[c] = share * c.usd_per_hour
    best = min(costs, key=lambda each: costs[each])
    return costs[best], best


def _of_on_demand(market: TracedMarket, window_h: float, start_h: float, works_h: list[float]) -> list[float]:
    """The offline optimum for each amount of work, in units of the on-demand price of an hour."""
    if not works_h:
        return []
    first = round(start_h / market.tick_h) - market.first_tick
    rows, unit = slice(first, first + int(window_h / market.tick_h + 1e-6)), min(market.on_demand_usd_h)
    on_demand = tuple(usd_h / unit for usd_h in market.on_demand_usd_h)
    terms = Terms(market.zones, window_h, max(works_h), CHANGEOVER_MIN / 60, market.tick_h, on_demand)
    return optima(market.up[rows], market.spot_usd_h[rows] / unit, terms, works_h)


def played(way: str, job: Job, place: str) -> Run:
    """The job, searched and run in one of the `WAYS`."""
    task = {"resources": {"use_spot": False}} if way == "on demand" else job.task
    run = start(replace(job, on=place, task=task), Ledger(None))
    if way == "chosen on demand":
        choices = tuple(replace(choice, on_spot=()) for choice in run.cloud.space.choices)
        run.cloud = replace(run.cloud, space=replace(run.cloud.space, choices=choices))
    if run.search().configuration is not None:
        run.launch()
    return run


def outcomes(name: str, window_h: float, history_h: float, starts: Sequence[float]) -> Iterator[Outcome]:
    """One recording in all windows and ways."""
    recording = recording_of(name)
    job = job_in(recording, window_h)
    with TemporaryDirectory() as written:
        folder = Path(written)
        save_recording(recording, folder)
        (folder / "market.yaml").write_text(market_yaml(recording, history_h))
        market = load_market_folder(folder)
        for start_h in starts:
            oracle_usd, best = oracle(market, job, window_h, start_h)
            for way in WAYS:
                place = f"market:{folder}@{start_h:g}h" if start_h else f"market:{folder}"
                account = played(way, job, place).book.account
                history, decision = account.history, account.decision
                assert decision is not None
                met = account.ended is not None and account.ended.finished and history.elapsed_s <= window_h * 3_600
                probes_usd = sum(m.usd for m in history.measurements)
                chosen = decision.configuration
                usd = history.spent_usd if chosen is not None else inf
                yield Outcome(name, start_h, way, chosen, best, usd, probes_usd, oracle_usd, met or chosen is None)


def report(found: Sequence[Outcome]) -> None:
    """Print means and spread by way, ours by recording, and its worst and best window."""
    for way in WAYS:
        of_way = [each for each in found if each.way == way]
        run = [each.over for each in of_way if each.chosen is not None]
        spread = f"median {median(run):.3f}, 5 to 95 % {np.quantile(run, 0.05):.2f} to {np.quantile(run, 0.95):.2f}"
        late, refused = sum(not each.met for each in of_way), len(of_way) - len(run)
        print(f"  {way:17} mean {fmean(run):.3f}, {spread}; {late} late, {refused} of {len(of_way)} not certified")
    ours = [each for each in found if each.way == "ours" and each.chosen is not None]
    for name in dict.fromkeys(each.recording for each in ours):
        of_name = [each for each in ours if each.recording == name]
        probes = fmean(each.probes_usd / each.oracle_usd for each in of_name)
        same = sum(each.chosen == each.best for each in of_name)
        values = " ".join(f"{each.over:.2f}" for each in of_name)
        print(f"    {name:30} {values}; probes {probes:.2f}, the oracle's choice {same} of {len(of_name)} times")
    worst, best = max(ours, key=lambda each: each.over), min(ours, key=lambda each: each.over)
    for word, each in (("worst", worst), ("best", best)):
        chosen_words = f"{each.chosen}, ${each.usd:.2f}; the oracle {each.best}, ${each.oracle_usd:.2f}"
        print(f"    {word}: {each.recording} from {each.start_h:g} h: {each.over:.2f}: {chosen_words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("tune", "report"), default="report")
    parser.add_argument("--window-h", type=float, nargs="+", default=[48.0, 24.0])
    parser.add_argument("--history-h", type=float, nargs="+", default=[0.0, 96.0])
    parser.add_argument("--stride-h", type=float, default=None, help="from window to window; 2 h, and 12 h to tune")
    parser.add_argument("--recordings", nargs="+", default=None)
    asked = parser.parse_args()
    every = sorted(path.name for path in (SHARED / "train").iterdir())
    names = asked.recordings or every[asked.part == "report" :: 2]
    first_h, last_h = (REPORTED_FROM_H, WEEK_H) if asked.part == "report" else (0.0, REPORTED_FROM_H)
    late = 0
    for window_h in asked.window_h:
        for history_h in asked.history_h:
            stride_h = asked.stride_h or (12.0 if asked.part == "tune" else 2.0 if window_h > 40 else 8.0)
            starts = np.arange(max(first_h, history_h), last_h - window_h - 1, stride_h).tolist()
            found = [each for name in names for each in outcomes(name, window_h, history_h, starts)]
            late += sum(not each.met for each in found)
            size = f"{len(names)} recordings x {len(starts)} windows"
            print(f"deadline {window_h:g} h, {history_h:g} h of history, {size}")
            report(found)
    raise SystemExit(bool(late))


if __name__ == "__main__":
    main()
