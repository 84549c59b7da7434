"""A recording made of a run: its own probes, as measurements that searches can be tried on."""

from __future__ import annotations

from datetime import UTC, datetime

from mlcd.clouds.recording import OUTCOMES, Point, Recording
from mlcd.core.errors import UserError
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement, Outcome


def recording_of(run: str, account: Account) -> Recording:
    """What the probes of a run have shown. Launches that failed by chance are left out: they say nothing."""
    job, history = account.job, account.searched
    telling: dict[str, Measurement] = {str(m.configuration): m for m in history.measurements if m.outcome in OUTCOMES}
    telling |= {str(m.configuration): m for m in history.good}
    order = {configuration: place for place, configuration in enumerate(account.space.configurations)}
    points = {
        m.configuration: Point(Outcome.OK if m.ok else m.outcome, m.samples_per_s)
        for m in sorted(telling.values(), key=lambda m: order[m.configuration])
    }
    if not history.good:
        raise UserError(f"run '{run}' has measured nothing that runs, so there is nothing to record: mlcd show {run}")
    made = f"{datetime.now(UTC):%Y-%m-%d}"
    return Recording(
        job.name,
        job.work_samples,
        points,
        account.space.probe_time,
        str(job.communication),
        job.hints.global_batch,
        f"mlcd record on {job.on.partition(':')[0]} ({account.provenance}), run {run}, {made}",
    )
