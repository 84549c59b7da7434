"""Two figures of a run on markets: when and where it was rented, and how much work was left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlcd.core.additions import Axis, Figure, LimitLine, Point, Series
from mlcd.core.history import Rental
from mlcd.core.ledger import Account
from mlcd.core.units import format_duration

NOTHING = "nothing rented"
"""The row of the time in which nothing is rented."""
A_WAIT_S = 60.0
"""A shorter time between two launches is no waiting: a launch takes some seconds to end."""
TIME = Axis(label="time since the start", unit="s")


@dataclass(frozen=True)
class RentalLeg:
    """A launch on a market, with the samples that were saved before it, done when it ended, and saved then."""

    rental: Rental
    before: float
    done: float
    saved: float
    lost_s: float
    """How long the work took that no checkpoint held when it ended."""


def legs_of(account: Account) -> Iterator[RentalLeg]:
    """The launches in their order."""
    history, saved = account.history, account.searched.saved_samples
    finished = account.ended is not None and account.ended.finished
    runs = history.runs[-len(history.rentals) :] if history.rentals else ()
    for rental, run in zip(history.rentals, runs, strict=True):
        before, done = saved, min(account.job.work_samples, saved + run.samples_done)
        saved = account.job.work_samples if finished and run is runs[-1] else max(saved, run.saved_samples)
        worked_s, lost = max(0.0, run.seconds - run.startup_s), max(0.0, done - saved)
        yield RentalLeg(rental, before, done, saved, worked_s * lost / (done - before) if lost else 0.0)


def rental_timeline(account: Account) -> Figure:
    """A row for each zone, a bar for each time that machines were rented there, and a row for the time between."""
    legs = list(legs_of(account))
    rows = [NOTHING, *sorted({_zone(leg.rental) for leg in legs}, reverse=True)]
    series = {name: list[Point]() for name in ("spot", "on demand", "lost work", "waiting", "not to be had")}
    series["taken back"] = []
    free_s = min((leg.rental.began_s for leg in legs), default=0.0)
    for leg in legs:
        rental = leg.rental
        row, words = rows.index(_zone(rental)) + 1, f"{rental.market}, {rental.outcome}".replace("_", " ")
        if not rental.came:
            series["not to be had"] += _mark(rental.began_s, row, f"{rental.market}: not to be had")
            continue
        if rental.began_s - free_s >= A_WAIT_S:
            series["waiting"] += _bar(free_s, rental.began_s, 1, NOTHING)
        series["spot" if rental.market.spot else "on demand"] += _bar(rental.began_s, rental.ended_s, row, words)
        if leg.lost_s > 0:
            lost = f"{format_duration(leg.lost_s)} of work that no checkpoint held"
            series["lost work"] += _bar(rental.ended_s - leg.lost_s, rental.ended_s, row, lost)
        if rental.taken_back:
            series["taken back"] += _mark(rental.ended_s, row, f"{rental.market}: taken back")
        free_s = rental.ended_s
    looks = {"lost work": "limit", "waiting": "quiet", "not to be had": "quiet"}
    return Figure(
        title="When and where it was rented",
        kind="spans",
        x=TIME,
        y=Axis(label="zone", names=rows),
        series=[
            Series.model_validate({"name": name, "points": points, "look": looks.get(name, "plain")})
            for name, points in series.items()
        ],
        limits=_deadline(account),
    )


def work_left_figure(account: Account) -> Figure:
    """The share of the work that is left after each launch, and the most that on demand would still finish in time."""
    whole, points = account.job.work_samples, list[Point]()
    for leg in legs_of(account):
        rental = leg.rental
        points.append(Point(x=rental.began_s, y=1 - leg.before / whole))
        points.append(Point(x=rental.ended_s, y=1 - max(leg.done, leg.saved) / whole, label=str(rental.market)))
        if leg.done > leg.saved:  # up again
            points.append(Point(x=rental.ended_s, y=1 - leg.saved / whole, label="what no checkpoint held is lost"))
    series = [Series(name="work left", points=points)]
    forecast, deadline_s = account.decision.forecast if account.decision else None, account.job.goal.deadline_s
    if forecast is not None and deadline_s is not None:
        latest_s, most = deadline_s - forecast.worst_seconds, 1 - account.searched.saved_samples / whole
        ends = [Point(x=latest_s, y=most), Point(x=deadline_s - account.space.startup_limit_s, y=0.0)]
        series.append(Series(name="the most that on demand still ends in time", points=ends, look="limit"))
    return Figure(
        title="Work left against the deadline",
        kind="lines",
        x=TIME,
        y=Axis(label="share of the work"),
        series=series,
        limits=_deadline(account),
        note="Before the work left meets the red line, the job goes on demand. Work that is lost is left again."
        if len(series) > 1
        else "",
    )


def _zone(rental: Rental) -> str:
    return rental.market.zone or rental.market.region or "any zone"


def _bar(from_s: float, to_s: float, row: int, words: str) -> list[Point]:
    """From and to, and a gap after it."""
    return [*(Point(x=at_s, y=row, label=words) for at_s in (from_s, to_s)), Point(x=to_s, y=None)]


def _mark(at_s: float, row: int, words: str) -> list[Point]:
    """A moment, and a gap after it."""
    return [Point(x=at_s, y=row, label=words), Point(x=at_s, y=None)]


def _deadline(account: Account) -> list[LimitLine]:
    deadline_s = account.job.goal.deadline_s
    return [] if deadline_s is None else [LimitLine(label="deadline", value=deadline_s, axis="x")]
