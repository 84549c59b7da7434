"""The ledger: every dollar, probe and reason of every run, in order. All other state is its replay."""

from mlcd.ledger.account import Account, Status
from mlcd.ledger.entries import (
    Decided,
    Ended,
    Entry,
    LimitsChanged,
    Refused,
    Reserved,
    Resumed,
    Settled,
    Started,
    Stopped,
    Voided,
    Warned,
)
from mlcd.ledger.rows import Line, Unreadable
from mlcd.ledger.store import Book, Ledger
from mlcd.ledger.submissions import Asked

__all__ = [
    "Account",
    "Asked",
    "Book",
    "Decided",
    "Ended",
    "Entry",
    "Ledger",
    "LimitsChanged",
    "Line",
    "Refused",
    "Reserved",
    "Resumed",
    "Settled",
    "Started",
    "Status",
    "Stopped",
    "Unreadable",
    "Voided",
    "Warned",
]
