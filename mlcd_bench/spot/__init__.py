"""Policies for spot machines, replayed on recorded markets and compared with the offline optimum."""

from mlcd.clouds.market_traces import TracedMarket as Market
from mlcd.clouds.market_traces import read_markets
from mlcd_bench.spot.contest import POLICIES, Run, Setting, contest, has_time, starts
from mlcd_bench.spot.optimum import optima
from mlcd_bench.spot.simulate import Conditions, Played, RecordedConditions, play
from mlcd_bench.spot.windows import tasks, windows

__all__ = [
    "POLICIES",
    "Conditions",
    "Market",
    "Played",
    "RecordedConditions",
    "Run",
    "Setting",
    "contest",
    "has_time",
    "optima",
    "play",
    "read_markets",
    "starts",
    "tasks",
    "windows",
]
