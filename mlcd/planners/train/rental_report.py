"""What a run on markets shows beside what every run has: where it was rented, what that saved, how close it was."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.additions import Additions, Cell, Column, Fact, Table
from mlcd.core.decision import Decision
from mlcd.core.history import Rental
from mlcd.core.job import Goal
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_confidence, format_duration, format_usd
from mlcd.planners.train.capacity import HOUR_S, fallback_of, informative_launches
from mlcd.planners.train.market.fallback import Fallback
from mlcd.planners.train.rental_figures import legs_of, rental_timeline, work_left_figure

LEAST_H = 24.0
"""Of watching, before a share of starts is shown."""
SELDOM = "starts were seen too seldom to count them"


def rental_report(account: Account) -> Additions | None:
    """None for a run that was rented on no market, and counts on no scarce machines."""
    rentals, runs = account.history.rentals, account.history.runs
    condition = _condition(account)
    if not rentals:
        return Additions(facts=condition) if condition else None
    launches = list(zip(rentals, runs[-len(rentals) :], strict=True))
    return Additions(
        facts=condition + _facts(account, launches),
        tables=[_table(launches)],
        figures=[rental_timeline(account), work_left_figure(account)],
    )


def _condition(account: Account) -> list[Fact]:
    """What a certificate counts on where on-demand machines were refused, in this run or before it."""
    decision, goal = account.decision, account.job.goal
    if decision is None or decision.configuration is None or decision.forecast is None or goal.deadline_s is None:
        return []
    ours, history = decision.configuration, account.history
    zones = [market.zone for market in account.space.markets(ours) if not market.spot]
    on_demand = informative_launches(ours, account.space, history, spot=False)
    slack_h = (goal.deadline_s - account.searched.elapsed_s - decision.forecast.worst_seconds) / HOUR_S
    counted_on = fallback_of(on_demand, zones, history.elapsed_s / HOUR_S, goal.confidence, slack_h)
    if counted_on is None:
        return []
    where = f"one of {counted(len(counted_on.zones), 'zone')} ({', '.join(counted_on.zones)})"
    within = f"within {format_duration(counted_on.wait_h * HOUR_S)}"
    return [
        Fact(
            label="Certified if",
            value=f"{ours} can be had on demand {within} in {where if counted_on.zones else 'any zone'}",
            hint=_evidence(counted_on, goal),
        )
    ]


def _evidence(counted_on: Fallback, goal: Goal) -> str:
    """Why that is to be expected, or how far it is not."""
    if not counted_on.zones:
        said = ["none had any when it was last asked"]
    else:
        hours, share = format_duration(counted_on.watched_h * HOUR_S), _percent(counted_on.share)
        said = [f"in the {hours} seen, {share} of starts were" if counted_on.watched_h >= LEAST_H else SELDOM]
        said.append(f"{_percent(counted_on.chance)} are expected to")
        if not counted_on.is_stated:
            sure = format_confidence(goal.confidence)
            said.append(
                f"{sure} cannot be promised without a later deadline, more zones, or more launches to learn from"
            )
    return "; ".join([*said, "the budget holds regardless"] if goal.budget_usd is not None else said)


def _percent(share: float) -> str:
    """Rounded down: nothing is promised that is not so."""
    return f"{int(100 * share + 1e-6)} %"


def _facts(account: Account, launches: Sequence[tuple[Rental, Measurement]]) -> list[Fact]:
    came = [rental for rental, _ in launches if rental.came]
    taken_back, refused = sum(rental.taken_back for rental in came), len(launches) - len(came)
    hours = sum((rental.ended_s - rental.began_s) / HOUR_S for rental in came)
    on_spot = sum((rental.ended_s - rental.began_s) / HOUR_S for rental in came if rental.market.spot)
    said = [
        "of the rented time",
        f"taken back {counted(taken_back, 'time')}",
        f"not to be had {counted(refused, 'time')}",
    ]
    if lost_s := sum(each.lost_s for each in legs_of(account)):
        said.append(f"{format_duration(lost_s)} of work lost")
    facts = [
        Fact(
            label="On spot machines",
            value=f"{100 * on_spot / hours:.0f} %" if hours else "not yet",
            hint=", ".join(said if hours else said[1:]),
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
