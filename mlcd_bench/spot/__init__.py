"""Recorded spot markets, jobs that are played on them, the offline optimum, and the contest of policies."""

from mlcd.clouds.market_traces import TracedMarket as Market
from mlcd.clouds.market_traces import read_markets
from mlcd_bench.spot.contest import POLICIES, Run, Setting, contest, has_time, starts
from mlcd_bench.spot.optimum import optima
from mlcd_bench.spot.simulate import Played, Recorded, Weather, play
from mlcd_bench.spot.windows import tasks, windows

__all__ = [
    "POLICIES",
    "Market",
    "Played",
    "Recorded",
    "Run",
    "Setting",
    "Weather",
    "contest",
    "has_time",
    "optima",
    "play",
    "read_markets",
    "starts",
    "tasks",
    "windows",
]
