"""Facts, table and figures of a run on spot markets: where it was rented, what that saved, how near the deadline."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.additions import Additions, Cell, Column, Fact, Table
from mlcd.core.decision import Decision
from mlcd.core.history import Rental
from mlcd.core.job import Goal
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_confidence, format_duration, format_usd
from mlcd.planners.train.launch_observations import HOUR_S, fallback_of, informative_launches
from mlcd.planners.train.market.fallback import Fallback
from mlcd.planners.train.rental_figures import legs_of, rental_timeline, work_left_figure

MIN_OBSERVED_H = 24.0
"""The observed hours needed before the share of successful starts is shown."""
TOO_FEW_STARTS = "too few starts were observed to count them"


def rental_report(account: Account) -> Additions | None:
    """None for a run that rented nothing on a market and whose certificate has no condition on on-demand machines."""
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
    """The condition of the certificate if on-demand launches failed, in this run or before it."""
    decision, goal = account.decision, account.job.goal
    if decision is None or decision.configuration is None or decision.forecast is None or goal.deadline_s is None:
        return []
    ours, history = decision.configuration, account.history
    zones = [market.zone for market in account.space.markets(ours) if not market.spot]
    on_demand = informative_launches(ours, account.space, history, spot=False)
    slack_h = (goal.deadline_s - account.searched.elapsed_s - decision.forecast.worst_seconds) / HOUR_S
    fallback = fallback_of(on_demand, zones, history.elapsed_s / HOUR_S, goal.confidence, slack_h)
    if fallback is None:
        return []
    where = f"one of {counted(len(fallback.zones), 'zone')} ({', '.join(fallback.zones)})"
    within = f"within {format_duration(fallback.wait_h * HOUR_S)}"
    return [
        Fact(
            label="Certified if",
            value=f"{ours} is available on demand {within} in {where if fallback.zones else 'any zone'}",
            hint=_evidence(fallback, goal),
        )
    ]


def _evidence(fallback: Fallback, goal: Goal) -> str:
    """How likely that is, and the evidence for it."""
    if not fallback.zones:
        parts = ["none had any when last asked"]
    else:
        hours, share = format_duration(fallback.observed_h * HOUR_S), _percent(fallback.share)
        parts = [
            f"in the {hours} observed, {share} of starts were"
            if fallback.observed_h >= MIN_OBSERVED_H
            else TOO_FEW_STARTS
        ]
        parts.append(f"{_percent(fallback.probability)} are expected to be")
        if not fallback.meets_confidence:
            confidence = format_confidence(goal.confidence)
            parts.append(
                f"{confidence} cannot be promised without a later deadline, more zones, or more observed launches"
            )
    return "; ".join([*parts, "the budget holds regardless"] if goal.budget_usd is not None else parts)


def _percent(share: float) -> str:
    """Rounded down, so that nothing is promised that does not hold."""
    return f"{int(100 * share + 1e-6)} %"


def _facts(account: Account, launches: Sequence[tuple[Rental, Measurement]]) -> list[Fact]:
    came = [rental for rental, _ in launches if rental.came]
    taken_back, refused = sum(rental.taken_back for rental in came), len(launches) - len(came)
    hours = sum((rental.ended_s - rental.began_s) / HOUR_S for rental in came)
    on_spot = sum((rental.ended_s - rental.began_s) / HOUR_S for rental in came if rental.market.spot)
    parts = [
        "of the rented time",
        f"preempted {counted(taken_back, 'time')}",
        f"not available {counted(refused, 'time')}",
    ]
    if lost_s := sum(each.lost_s for each in legs_of(account)):
        parts.append(f"{format_duration(lost_s)} of work lost")
    facts = [
        Fact(
            label="On spot machines",
            value=f"{100 * on_spot / hours:.0f} %" if hours else "not yet",
            hint=", ".join(parts if hours else parts[1:]),
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
                hint=f"{format_usd(spent_usd)} instead of {format_usd(on_demand_usd)}, expected on demand",
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
