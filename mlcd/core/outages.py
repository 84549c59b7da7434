"""When a place fails, and not the job: the run stops, with everything kept, and can be resumed."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.errors import BackendError, NoAccess, NothingOrdered, Outage, StillUp
from mlcd.core.ledger import Book, Stopped

FAILED_LAUNCHES = 2
"""Launches in a row that a place may fail before the run is stopped."""


def check_place(
    before: Sequence[BackendError], failed: Sequence[BackendError], book: Book, *, worked: bool = False
) -> list[BackendError]:
    """The launches in a row that the place has failed so far. `Outage` if another one would be no use.

    `before`: those until now; `failed`: those of the last step. `worked`: one of its launches did, or saved work first.
    """
    in_a_row = [] if worked else [*before, *failed]
    hopeless = next((error for error in failed if isinstance(error, NoAccess | StillUp)), None)
    if not failed or (hopeless is None and len(in_a_row) < FAILED_LAUNCHES):
        return in_a_row
    because = str(hopeless or failed[-1])
    book.write(Stopped(because))
    free = all(isinstance(error, NothingOrdered) for error in (*in_a_row, *failed))
    kept = "Nothing was ordered, and nothing is billed for it" if free else "Everything measured is kept"
    raise Outage(f"{because}. {kept}. Go on with: mlcd resume {book.run}") from failed[-1]
