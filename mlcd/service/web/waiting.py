"""Runs that were asked for and have not begun: from what was submitted."""

from __future__ import annotations

from mlcd.core.ledger import Ledger
from mlcd.reports.view import Summary, waiting_summary


def waiting_summaries(ledger: Ledger) -> list[Summary]:
    """All that wait, and all that were refused, in the order they were asked for."""
    from mlcd.service.workers.asked import from_json

    found = []
    for asked in ledger.waiting():
        job, _ = from_json(asked.asked)
        at = asked.created_at.isoformat()
        found.append(waiting_summary(asked.run, at, job, asked.refused, asked.owner, asked.team))
    return found


def launch_asked(ledger: Ledger, run: str) -> bool:
    """Whether the decision of this run is to be run without being asked again."""
    from mlcd.service.workers.asked import from_json

    asked = ledger.asked(run)
    return asked is not None and from_json(asked.asked)[1]
