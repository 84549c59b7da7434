"""What one probe may cost where nobody says: a share of the budget, or of the cheapest finish that is to be expected.

It is set when a run starts and kept in its ledger, so that a run that goes on keeps the same.
"""

from __future__ import annotations

from mlcd.core.configuration import Space
from mlcd.core.job import Job
from mlcd.planners.train.outlook import cheapest_expected_usd

SHARE = 0.15
"""Of the budget, or of the cheapest expected finish. docs/reference/guarantee.md has what this was chosen by."""
LEAST_USD = 20.0
"""Without a budget: what a model expects of a job that nobody has measured must not shut out ordinary machines."""


def usual_probe_limit(job: Job, space: Space) -> float:
    """Never so small that not even the cheapest probe is allowed."""
    if job.goal.budget_usd is not None:
        share_usd = SHARE * job.goal.budget_usd
    else:
        share_usd = max(SHARE * (cheapest_expected_usd(job, space) or 0.0), LEAST_USD)
    return max(share_usd, float(space.probe_usd.min()))
