"""The few numbers that the allowance keeps of a run say what the ledger's own replay says, after every entry."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import (
    Account,
    Decided,
    Ended,
    Entry,
    LimitsChanged,
    Reserved,
    Resumed,
    Settled,
    Started,
    Status,
    Stopped,
    Voided,
)
from mlcd.core.measurement import Measurement, Outcome
from mlcd.service.team.budget import Facts

SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1,)),))
PLACE = SPACE.configurations[0]
MOVES = {Status.SEARCHING: True, Status.RUNNING: True, Status.DECIDED: None}
"""Whether a run of this status can spend; all others cannot."""


def entry_of(kind: str, account: Account, cents: int) -> Entry | None:
    """An entry of this kind that the ledger would take now, if there is one."""
    match kind:
        case "reserved":
            purpose = Purpose.PROBE if account.decision is None else Purpose.RUN
            order = Launch(f"run-{account.orders}", PLACE, purpose, 1.0, None, account.orders, account.rounds)
            return Reserved(order, "to see", 1.0, 60.0)
        case "settled" if account.open:
            return Settled(account.open[0].launch, Measurement(PLACE, Outcome.OK, 60.0, cents / 100, 1.0))
        case "voided" if account.open:
            return Voided(account.open[-1].launch, "no machine was left")
        case "decided" if account.decision is None and not account.open:
            return Decided(Decision(PLACE if cents % 3 else None, "enough"))
        case "stopped":
            return Stopped("interrupted")
        case "resumed":
            return Resumed("went on")
        case "limits_changed" if account.ended is None or not account.ended.finished:
            return LimitsChanged(Goal(budget_usd=cents / 100), "the user changed the budget")
        case "ended" if account.decision is not None and not account.open:
            return Ended(bool(cents % 2), "over")
    return None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["reserved", "settled", "settled", "voided", "decided", "stopped", "resumed", "ended", "limits_changed"]
            ),
            st.integers(0, 500),
            st.sampled_from(["2026-10", "2026-11", "2026-12"]),
        ),
        max_size=30,
    )
)
def test_the_facts_of_a_run_follow_its_account(steps: list[tuple[str, int, str]]):
    first = Started(Job("run", 1.0), SPACE, "simulated", Provenance.SIMULATED, "0")
    account, facts, settled = Account().after(first, 0.0), Facts(), dict[str, float]()
    for kind, cents, month in steps:
        entry = entry_of(kind, account, cents)
        goes_on = isinstance(entry, Resumed | LimitsChanged) and account.status is not Status.FINISHED
        if entry is None or (account.ended is not None and not goes_on):
            continue
        account = account.after(entry, 0.0)
        usd = entry.measurement.usd if isinstance(entry, Settled) else 1.0
        placed = not isinstance(entry, Decided) or entry.decision.configuration is not None
        facts = facts.after(entry.kind, month, usd, "small" if placed else None)
        if isinstance(entry, Settled):
            settled[month] = settled.get(month, 0.0) + usd
        assert facts.months == settled
        assert facts.spent_usd == account.history.spent_usd
        assert facts.open == len(account.open)
        can_spend = True if account.open else MOVES.get(account.status, False)
        assert facts.can_spend is can_spend, account.status
        waits = account.decision is not None and not account.final_runs and not account.open
        assert facts.is_waiting_at_decision is waits
