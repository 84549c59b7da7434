"""What a run on markets shows beside what every run has: where it was rented, what that saved, how close it was."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.additions import Additions, Axis, Cell, Column, Fact, Figure, LimitLine, Point, Series, Table
from mlcd.core.decision import Decision
from mlcd.core.history import Rental
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_usd

HOUR_S = 3_600.0


def rentals_shown(account: Account) -> Additions | None:
    """None for a run that was rented on no market."""
    rentals, runs = account.history.rentals, account.history.runs
    if not rentals:
        return None
    launches = list(zip(rentals, runs[-len(rentals) :], strict=True))
    return Additions(
        facts=_facts(account, launches), tables=[_table(launches)], figures=[_time_line(account), _work_left(account)]
    )


def _facts(account: Account, launches: Sequence[tuple[Rental, Measurement]]) -> list[Fact]:
    came = [rental for rental, _ in launches if rental.came]
    taken_back, refused = sum(rental.taken_back for rental in came), len(launches) - len(came)
    hours = sum((rental.ended_s - rental.began_s) / HOUR_S for rental in came)
    on_spot = sum((rental.ended_s - rental.began_s) / HOUR_S for rental in came if rental.market.spot)
    facts = [
        Fact(
            label="On spot machines",
            value=f"{100 * on_spot / hours:.0f} % of the time" if hours else "not yet",
            hint=f"taken back {counted(taken_back, 'time')}, not to be had {counted(refused, 'time')}",
        )
    ]
    decision = account.decision
    if account.ended is not None and account.ended.finished and decision is not None and decision.forecast is not None:
        spent_usd, on_demand_usd = sum(m.usd for _, m in launches), _on_demand_usd(decision)
        saved_usd = on_demand_usd - spent_usd
        facts.append(
            Fact(
                label="Saved by spot machines" if saved_usd >= 0 else "Lost by spot machines",
                value=format_usd(abs(saved_usd)),
                hint=f"{format_usd(spent_usd)} in place of {format_usd(on_demand_usd)}, expected on demand",
            )
        )
    return facts


def _on_demand_usd(decision: Decision) -> float:
    assert decision.configuration is not None
    assert decision.forecast is not None
    return decision.configuration.usd(decision.forecast.seconds)


def _table(launches: Sequence[tuple[Rental, Measurement]]) -> Table:
    columns = [
        Column(label="After", unit="s", align="right"),
        Column(label="For", unit="s", align="right"),
        Column(label="Rented"),
        Column(label="How it ended"),
        Column(label="Cost", unit="usd", align="right"),
        Column(label="Refused before", align="right"),
    ]
    rows: list[list[Cell]] = []
    refused = 0
    for rental, m in launches:
        refused += not rental.came
        if rental.came:
            taken_s = rental.ended_s - rental.began_s
            rows.append([rental.began_s, taken_s, str(rental.market), m.ending, m.usd, refused])
            refused = 0
    return Table(title="Where the job was rented", columns=columns, rows=rows)


def _time_line(account: Account) -> Figure:
    """A row for each market, and a bar for each time that machines were rented there."""
    rentals = [rental for rental in account.history.rentals if rental.came]
    series = []
    for row, market in enumerate(sorted({str(rental.market) for rental in rentals}), 1):
        points: list[Point] = []
        for rental in rentals:
            if str(rental.market) == market:
                label = f"{market}, {rental.outcome}".replace("_", " ")
                ends = (rental.began_s, rental.ended_s)
                points += [Point(x=at, y=row, label=label) for at in ends] + [Point(x=ends[1], y=None)]
        series.append(Series(name=market, points=points))
    return Figure(
        title="When and where it was rented",
        kind="lines",
        x=Axis(label="time since the start", unit="s"),
        y=Axis(label="market"),
        series=series,
        limits=_deadline(account),
        note="Gaps: nothing was rented.",
    )


def _work_left(account: Account) -> Figure:
    """The share of the work that is left after each launch, and the most that on demand would still finish in time."""
    whole, history, saved = account.job.work_samples, account.history, account.searched.saved_samples
    runs, points = history.runs[-len(history.rentals) :], list[Point]()
    finished = account.ended is not None and account.ended.finished
    for rental, run in zip(history.rentals, runs, strict=True):
        points.append(Point(x=rental.began_s, y=1 - saved / whole))
        saved = whole if finished and run is runs[-1] else max(saved, run.saved_samples)
        points.append(Point(x=rental.ended_s, y=1 - saved / whole, label=str(rental.market)))
    series = [Series(name="work left", points=points)]
    forecast, deadline_s = account.decision.forecast if account.decision else None, account.job.goal.deadline_s
    if forecast is not None and deadline_s is not None:
        ends = [Point(x=deadline_s - forecast.worst_seconds, y=1 - account.searched.saved_samples / whole)]
        series.append(Series(name="on demand just fits", points=[*ends, Point(x=deadline_s, y=0.0)]))
    return Figure(
        title="Work left",
        kind="lines",
        x=Axis(label="time since the start", unit="s"),
        y=Axis(label="share of the work"),
        series=series,
        limits=_deadline(account),
        note="Before the second line is met, the job goes on demand." if len(series) > 1 else "",
    )


def _deadline(account: Account) -> list[LimitLine]:
    deadline_s = account.job.goal.deadline_s
    return [] if deadline_s is None else [LimitLine(label="deadline", value=deadline_s, axis="x")]
