"""When a place fails, and not the job: the run stops, with everything kept, and can be resumed."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.errors import BackendError, NoAccess, NothingOrdered, Outage, StillUp
from mlcd.ledger import Book, Stopped

FAILED_LAUNCHES = 2
"""Launches in a row that a place may fail before the run is stopped."""


def check_place(failures: Sequence[BackendError], book: Book) -> list[BackendError]:
    """The launches in a row that the place has failed so far. `Outage` if another one would be no use."""
    if not failures:
        return []
    hopeless = next((error for error in failures if isinstance(error, NoAccess | StillUp)), None)
    if hopeless is None and len(failures) < FAILED_LAUNCHES:
        return list(failures)
    because = str(hopeless or failures[-1])
    book.write(Stopped(because))
    free = all(isinstance(error, NothingOrdered) for error in failures)
    kept = "Nothing was ordered, and nothing is billed for it" if free else "Everything measured is kept"
    raise Outage(f"{because}. {kept}. Go on with: mlcd resume {book.run}") from failures[-1]
