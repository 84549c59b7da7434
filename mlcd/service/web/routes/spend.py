"""Spending by person, team and month."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastapi import APIRouter

from mlcd.reports.view.summary import Summary
from mlcd.service.web.answers import Spend, SpendMonth, SpendShare, SpendSource, problems
from mlcd.service.web.identity import Viewer
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["runs"])


@router.get("/spend", summary="What was spent, by person, team and month", responses=problems())
async def spend(state: CurrentState, who: Viewer) -> Spend:
    """The highest first; months in order. Runs without an owner are those of the command line."""
    summaries = state.feed.summaries()
    people, teams = _summed(summaries, lambda each: each.owner), _summed(summaries, lambda each: each.team)
    months = _summed(summaries, lambda each: each.started_at[:7])
    sources = _summed((each for each in summaries if each.provenance), lambda each: each.provenance)
    return Spend(
        by_provenance=[SpendSource(name=name, usd=usd, runs=runs) for name, (usd, runs) in _highest_first(sources)],
        by_person=[SpendShare(name=name, usd=usd, runs=runs) for name, (usd, runs) in _highest_first(people)],
        by_team=[SpendShare(name=name, usd=usd, runs=runs) for name, (usd, runs) in _highest_first(teams)],
        by_month=[SpendMonth(month=month, usd=usd, runs=runs) for month, (usd, runs) in sorted(months.items())],
    )


def _summed(summaries: Iterable[Summary], key: Callable[[Summary], Any]) -> dict[Any, tuple[float, int]]:
    sums: dict[Any, tuple[float, int]] = {}
    for each in summaries:
        usd, runs = sums.get(key(each), (0.0, 0))
        sums[key(each)] = usd + each.spent_usd, runs + 1
    return sums


def _highest_first(sums: dict[Any, tuple[float, int]]) -> list[tuple[Any, tuple[float, int]]]:
    return sorted(sums.items(), key=lambda each: -each[1][0])
