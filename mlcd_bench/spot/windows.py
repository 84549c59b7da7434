"""Runs the contest of spot policies in several processes, window by window."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd.clouds.market_traces import TracedMarket as Market
from mlcd_bench.spot.contest import Run, Setting, starts, window

Task = tuple[int, int, float]
"""The index of a market in the list, the row at which the window starts, minutes of the changeover."""


def tasks(markets: Sequence[Market], setting: Setting) -> list[Task]:
    """All windows, in the order in which they are reported."""
    return [
        (index, start, changeover_min)
        for index, market in enumerate(markets)
        for start in starts(market, setting)
        for changeover_min in setting.changeovers_min
    ]


def windows(
    markets: Sequence[Market], policies: Sequence[str], setting: Setting, processes: int = 1
) -> Iterator[list[Run]]:
    """The runs of each window, in the order of `tasks`. The number of processes does not change the results."""
    todo = tasks(markets, setting)
    if processes == 1:
        _initialize(markets)
        yield from map(partial(_play, policies, setting), todo)
        return
    pool = ProcessPoolExecutor(processes, initializer=_initialize, initargs=(markets,))
    try:
        yield from pool.map(partial(_play, policies, setting), todo)
    finally:
        pool.shutdown(cancel_futures=True)


_MARKETS: Sequence[Market] = ()
"""The markets of a worker process: sent once to each, since a market is large and there are many windows."""


def _initialize(markets: Sequence[Market]) -> None:
    global _MARKETS
    _MARKETS = markets
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
        threadpool_limits(1)  # the tables are small, and the other cores are busy


def _play(policies: Sequence[str], setting: Setting, task: Task) -> list[Run]:
    index, start, changeover_min = task
    return list(window(_MARKETS[index], policies, setting, start, changeover_min))
