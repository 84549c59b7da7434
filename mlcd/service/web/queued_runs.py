"""Runs that were submitted and have not started."""

from __future__ import annotations

from mlcd.core.ledger import Ledger
from mlcd.reports.view.summary import Summary, waiting_summary


def waiting_summaries(ledger: Ledger) -> list[Summary]:
    """All that wait or were refused, in the order of submission."""
    from mlcd.service.workers.submitted import from_json

    summaries = []
    for each in ledger.waiting():
        job, _ = from_json(each.asked)
        at = each.created_at.isoformat()
        summaries.append(waiting_summary(each.run, at, job, each.refused, each.owner, each.team))
    return summaries


def launch_requested(ledger: Ledger, run: str) -> bool:
    """Whether the decision of this run will be launched without asking the user."""
    from mlcd.service.workers.submitted import from_json

    submission = ledger.asked(run)
    return submission is not None and from_json(submission.asked)[1]
