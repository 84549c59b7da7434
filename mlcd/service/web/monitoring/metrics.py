"""Metrics in Prometheus' text format, on a registry of our own.

Counts of runs and money are computed from the ledger at each request, so that they survive a restart. Labels have few
values: statuses, members, teams, route templates; never a path, a run or anything else that a request can make up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from mlcd.core.backend import Purpose
from mlcd.core.ledger import Account, Line, Settled
from mlcd.core.version import VERSION
from mlcd.reports.view.summary import INTERRUPTED, STATUSES, Summary, standing_of
from mlcd.service.workers.roster import Roster

API_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PROBE_S = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 3_600.0, 7_200.0)


class Metrics:
    """The metrics of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "mlcd_http_request_duration_seconds",
            "Time until the answer begins, by route template.",
            ["method", "route", "status"],
            buckets=API_S,
            registry=self._registry,
        )
        self._probes = Histogram(
            "mlcd_probe_duration_seconds",
            "Duration of probes from ordering the machines to the end; simulated ones on the simulated clock.",
            ["provenance", "outcome"],
            buckets=PROBE_S,
            registry=self._registry,
        )

    def on_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record an answered request."""
        self._requests.labels(method, route, str(status)).observe(seconds)

    def on_entry(self, line: Line, account: Account) -> None:
        """Record a ledger entry. At the start of the service, all entries are replayed here."""
        entry = line.entry
        if isinstance(entry, Settled) and entry.launch.purpose is Purpose.PROBE:
            provenance = account.provenance or "unknown"
            self._probes.labels(str(provenance), str(entry.measurement.outcome)).observe(entry.measurement.seconds)

    def page(self, summaries: Sequence[Summary], roster: Roster) -> bytes:
        """All metrics, with the runs, workers and queue of this moment."""
        now = CollectorRegistry()
        now.register(_Fixed([*_of_runs(summaries), *_of_workers(roster)]))
        return generate_latest(now) + generate_latest(self._registry)


class _Fixed:
    """A collector that returns given metric families."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_runs(summaries: Sequence[Summary]) -> list[Metric]:
    build = GaugeMetricFamily("mlcd_build_info", "The version of MLCD.", labels=["version"])
    build.add_metric([VERSION], 1)
    runs = GaugeMetricFamily("mlcd_runs", "Runs by status.", labels=["status"])
    standing = Counter(standing_of(each.status, each.driven) for each in summaries)
    for status in (*STATUSES, INTERRUPTED):
        runs.add_metric([status], standing[status])
    spent = CounterMetricFamily(
        "mlcd_spent_usd",
        "Dollars spent, by who submitted the run; only provenance=live is real money.",
        labels=["provenance", "team", "member"],
    )
    sums: Counter[tuple[str, str, str]] = Counter()
    for each in summaries:
        if each.provenance is not None:
            sums[each.provenance, each.team or "", each.owner or ""] += each.spent_usd  # type: ignore[assignment]
    for labels, usd in sorted(sums.items()):
        spent.add_metric(labels, usd)
    return [build, runs, spent]


def _of_workers(roster: Roster) -> list[Metric]:
    alive = GaugeMetricFamily("mlcd_workers", "Workers, by whether their last heartbeat is recent.", labels=["state"])
    alive.add_metric(["alive"], roster.alive)
    alive.add_metric(["silent"], len(roster.workers) - roster.alive)
    slots = GaugeMetricFamily("mlcd_worker_slots", "Runs that live workers can drive at once.")
    slots.add_metric([], sum(each.slots or 0 for each in roster.workers if each.alive))
    driven = GaugeMetricFamily("mlcd_driven_runs", "Runs that a worker has taken.")
    driven.add_metric([], sum(len(each.runs) for each in roster.workers))
    depth = GaugeMetricFamily("mlcd_queue_depth", "Runs that wait for a worker.")
    depth.add_metric([], len(roster.waiting))
    oldest = GaugeMetricFamily("mlcd_queue_oldest_seconds", "How long the oldest queued run has waited.")
    waited = ((roster.at - each.since).total_seconds() for each in roster.waiting if each.since is not None)
    oldest.add_metric([], max(0.0, *waited, 0.0))
    return [alive, slots, driven, depth, oldest]
