"""The ledger: an append-only log of every run's probes, costs and reasons. All other state is replayed from it."""

from mlcd.core.ledger.account import Account, Status
from mlcd.core.ledger.entries import (
    Decided,
    Ended,
    Entry,
    LimitsChanged,
    Line,
    Refused,
    Reserved,
    Resumed,
    Settled,
    Started,
    Stopped,
    Unreadable,
    Voided,
    Waited,
    Warned,
)
from mlcd.core.ledger.labels import UNLABELLED, Labels, LabelUpdate
from mlcd.core.ledger.store import Book, Ledger
from mlcd.core.ledger.submissions import Submission

__all__ = [
    "UNLABELLED",
    "Account",
    "Book",
    "Decided",
    "Ended",
    "Entry",
    "LabelUpdate",
    "Labels",
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
    "Submission",
    "Unreadable",
    "Voided",
    "Waited",
    "Warned",
]  # fmt: skip
