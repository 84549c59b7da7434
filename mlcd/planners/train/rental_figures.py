"""Two figures of a run on markets: when and where it was rented, and how much work was left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlcd.core.additions import Axis, Figure, LimitLine, Point, Series
from mlcd.core.history import Rental
from mlcd.core.ledger import Account
from mlcd.core.units import format_duration

NOTHING = "nothing rented"
"""The name of the row for times without machines."""
MIN_WAIT_S = 60.0
"""A shorter time between two launches is not shown as waiting: a launch takes some seconds to end."""
TIME = Axis(label="time since the start", unit="s")


@dataclass(frozen=True)
class RentalLeg:
    """A launch on a market, with the samples saved before it, done at its end, and saved at its end."""

    rental: Rental
    before: float
    done: float
    saved: float
    lost_s: float
    """The working time that was lost at its end, since no checkpoint held it."""


def legs_of(account: Account) -> Iterator[RentalLeg]:
    """The launches in order."""
    history, saved = account.history, account.searched.saved_samples
    finished = account.ended is not None and account.ended.finished
    runs = history.runs[-len(history.rentals) :] if history.rentals else ()
    for rental, run in zip(history.rentals, runs, strict=True):
        before, done = saved, min(account.job.work_samples, saved + run.samples_done)
        saved = account.job.work_samples if finished and run is runs[-1] else max(saved, run.saved_samples)
        worked_s, lost = max(0.0, run.seconds - run.startup_s), max(0.0, done - saved)
        yield RentalLeg(rental, before, done, saved, worked_s * lost / (done - before) if lost else 0.0)


def rental_timeline(account: Account) -> Figure:
    """A row for each zone with a bar for each launch there, and a row for the times without machines."""
    legs = list(legs_of(account))
    rows = [NOTHING, *sorted({_zone(leg.rental) for leg in legs}, reverse=True)]
    series = {name: list[Point]() for name in ("spot", "on demand", "lost work", "waiting", "not available")}
    series["preempted"] = []
    free_s = min((leg.rental.began_s for leg in legs), default=0.0)
    for leg in legs:
        rental = leg.rental
        row, label = rows.index(_zone(rental)) + 1, f"{rental.market}, {rental.outcome}".replace("_", " ")
        if not rental.came:
            series["not available"] += _mark(rental.began_s, row, f"{rental.market}: not available")
            continue
        if rental.began_s - free_s >= MIN_WAIT_S:
            series["waiting"] += _bar(free_s, rental.began_s, 1, NOTHING)
        series["spot" if rental.market.spot else "on demand"] += _bar(rental.began_s, rental.ended_s, row, label)
        if leg.lost_s > 0:
            lost = f"{format_duration(leg.lost_s)} of work that no checkpoint held"
            series["lost work"] += _bar(rental.ended_s - leg.lost_s, rental.ended_s, row, lost)
        if rental.taken_back:
            series["preempted"] += _mark(rental.ended_s, row, f"{rental.market}: preempted")
        free_s = rental.ended_s
    looks = {"lost work": "limit", "waiting": "quiet", "not available": "quiet"}
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
    """The share of the work left over time, and the most that on-demand machines could still finish in time."""
    whole, points = account.job.work_samples, list[Point]()
    for leg in legs_of(account):
        rental = leg.rental
        points.append(Point(x=rental.began_s, y=1 - leg.before / whole))
        points.append(Point(x=rental.ended_s, y=1 - max(leg.done, leg.saved) / whole, label=str(rental.market)))
        if leg.done > leg.saved:  # the curve goes up
            points.append(
                Point(x=rental.ended_s, y=1 - leg.saved / whole, label="work since the last checkpoint is lost")
            )
    series = [Series(name="work left", points=points)]
    forecast, deadline_s = account.decision.forecast if account.decision else None, account.job.goal.deadline_s
    if forecast is not None and deadline_s is not None:
        latest_s, most = deadline_s - forecast.worst_seconds, 1 - account.searched.saved_samples / whole
        ends = [Point(x=latest_s, y=most), Point(x=deadline_s - account.space.startup_limit_s, y=0.0)]
        series.append(Series(name="the most that on demand can still finish in time", points=ends, look="limit"))
    return Figure(
        title="Work left against the deadline",
        kind="lines",
        x=TIME,
        y=Axis(label="share of the work"),
        series=series,
        limits=_deadline(account),
        note="The job goes on demand before the work left reaches the red line. Lost work counts as left again."
        if len(series) > 1
        else "",
    )


def _zone(rental: Rental) -> str:
    return rental.market.zone or rental.market.region or "any zone"


def _bar(from_s: float, to_s: float, row: int, label: str) -> list[Point]:
    """A bar from one time to another, and a gap after it."""
    return [*(Point(x=at_s, y=row, label=label) for at_s in (from_s, to_s)), Point(x=to_s, y=None)]


def _mark(at_s: float, row: int, label: str) -> list[Point]:
    """A mark at one time, and a gap after it."""
    return [Point(x=at_s, y=row, label=label), Point(x=at_s, y=None)]


def _deadline(account: Account) -> list[LimitLine]:
    deadline_s = account.job.goal.deadline_s
    return [] if deadline_s is None else [LimitLine(label="deadline", value=deadline_s, axis="x")]
