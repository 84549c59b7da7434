"""Orders: the arguments of function calls, as plain data; and the calibration that is computed from their reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from mlcd.clouds.functions.bucket import Stored
from mlcd.clouds.functions.throttle import share_of
from mlcd.core.job import Job
from mlcd.planners.functions.nouns import SAMPLE_SHARE, Allocation, Calibrated, FunctionsTask, functions_task
from mlcd.planners.functions.space import tariff_of
from mlcd.planners.functions.workload import CALIBRATION_STEPS, Workload

Order = dict[str, Any]
Report = dict[str, Any]

EXCHANGE_TIMEOUT_S = 60.0
"""How long functions wait for one that has not joined: it may still be starting."""
GATE_POLL_S, GATE_POLL_CLOUD_S = 0.02, 0.25
"""Polling interval at a gate, on this machine and on a cloud."""
EVALUATED_SAMPLES = 10_000
"""About so many samples, evenly spaced over all data, are used to compute the loss of an epoch."""
KILOBYTE_MB = 0.001
LARGEST_MB = 32.0
"""Largest single transfer in a calibration."""
Fault = Callable[[], object]
Faults = Callable[[int, int, int], Fault | None]
"""For tests: what a function does half-way through, by epoch, rank and attempt."""


@dataclass(frozen=True)
class Orders:
    """Makes the orders of a launch's functions. `name`: prefix of all keys; `throttled`: they share this machine."""

    job: Job
    allocation: Allocation
    stored: Stored
    url: str
    name: str
    throttled: bool
    retry_s: float
    """How long requests to a storage that does not answer are retried."""
    faults: Faults = lambda epoch, rank, attempt: None

    @property
    def task(self) -> FunctionsTask:
        """The job's task on functions."""
        return functions_task(self.job)

    def epoch(
        self, trial: int, epoch: int, initial_model: str | None, attempt: int, until: float, requests: int | None
    ) -> list[Order]:
        """The orders of an attempt at an epoch. Models are keys in the bucket; None is the initial model."""
        common = self._common(trial, self.allocation, self.task.workload, until)
        models = {"from": initial_model, "into": self.model(trial, epoch, attempt)}
        return self._each({**common, **models}, trial, epoch, attempt, requests)

    def waiting(
        self, trial: int, epoch: int, gate: str, waits_until: float, attempt: int, until: float, requests: int | None
    ) -> list[Order]:
        """The orders of an attempt at an epoch whose model does not exist yet: its key will be written to `gate`."""
        own = {
            "gate": gate,
            "waits_until": waits_until,
            "gate_poll_s": GATE_POLL_S if self.throttled else GATE_POLL_CLOUD_S,
        }
        return [{**order, **own} for order in self.epoch(trial, epoch, None, attempt, until, requests)]

    def calibration(self, attempt: int, until: float, requests: int | None) -> list[Order]:
        """The orders of an attempt at a calibration."""
        common = self._common(0, self.allocation, self.task.workload, until)
        sizes_mb = _sizes_mb(self.task, self.allocation.storage)
        own = {"from": None, "sizes_mb": sizes_mb, "steps_most": CALIBRATION_STEPS}
        return self._each({**common, **own}, 0, 0, attempt, requests)

    def sample(
        self, trial: int, functions: int, epochs: int, attempt: int, until: float, requests: int | None
    ) -> list[Order]:
        """The order of one function that trains a sample of the data as `functions` would train all of it."""
        workload = self.task.workload.sampled(SAMPLE_SHARE, functions)
        common = self._common(trial, replace(self.allocation, functions=1), workload, until)
        return [{**common, "from": None, "epochs": epochs, "rank": 0, "fault": None, "requests_most": None}]

    def group(self, trial: int, epoch: int, attempt: int) -> str:
        """The prefix under which the functions of an attempt exchange data; unique."""
        return f"{self.name}/{trial}-{epoch}-{attempt}"

    def model(self, trial: int, epoch: int, attempt: int) -> str:
        """The key of the model that an attempt makes."""
        return f"mlcd/models/{self.group(trial, epoch, attempt)}"

    def _each(self, common: Order, trial: int, epoch: int, attempt: int, requests: int | None) -> list[Order]:
        """One order for each rank. Rank 0 collects from all others, and gets as many requests as they together."""
        n, group = self.allocation.functions, self.group(trial, epoch, attempt)
        orders = []
        for rank in range(n):
            most = None if requests is None else requests if n == 1 else requests // (2 if rank == 0 else 2 * (n - 1))
            own = {"rank": rank, "group": group, "requests_most": most, "fault": self.faults(epoch, rank, attempt)}
            orders.append({**common, **own})
        return orders

    def _common(self, trial: int, allocation: Allocation, workload: Workload, until: float) -> Order:
        tuning = self.task.tuning
        drawn = {"learning_rate": workload.learning_rate}
        if tuning is not None:
            drawn |= tuning.hyperparameters(trial, self.job.search.seed)
        return {
            "model": workload.model,
            "data": workload.data,
            "folder": self.job.folder,
            "samples": workload.samples,
            "batch": workload.batch,
            "iterations": workload.iterations(allocation.functions),
            "learning_rate": drawn.pop("learning_rate"),
            "hyperparameters": drawn,
            "seed": self.job.search.seed,
            "stored": asdict(self.stored),
            "evaluate_every": max(1, workload.samples // EVALUATED_SAMPLES),
            "functions": allocation.functions,
            "share": share_of(allocation.memory_mb) if self.throttled else None,
            "storage": allocation.storage,
            "url": self.url,
            "retry_s": self.retry_s,
            "exchange_timeout_s": EXCHANGE_TIMEOUT_S,
            "until": until,
        }


def _sizes_mb(task: FunctionsTask, storage: str) -> tuple[float, ...]:
    """Sizes of single transfers: a kilobyte, the model, and a third size that the storage can hold."""
    model_mb, largest_mb = task.workload.model_mb, tariff_of(task).storage(storage).largest_mb
    larger_mb = max(4 * model_mb, 100 * KILOBYTE_MB)
    third_mb = larger_mb if larger_mb <= min(LARGEST_MB, 0.9 * largest_mb) else model_mb / 4
    return tuple(sorted({KILOBYTE_MB, model_mb, third_mb}))


def calibration_of(
    allocation: Allocation, workload: Workload, reports: Sequence[Report], called_at: float
) -> Calibrated:
    """Compute the calibration from the reports.

    Means over the functions: when one computes longer, the others wait for it, so the mean times of computing and of
    synchronising add up to the time of a step.
    """
    sample_mb = workload.data_mb / workload.samples
    return Calibrated(
        allocation,
        s_per_mb=sum(report["compute_s"] for report in reports)
        / (sample_mb * sum(report["rows"] for report in reports)),
        load_mb_per_s=workload.data_mb / allocation.functions / fmean(report["load_s"] for report in reports),
        start_s=max(0.0, max(report["up_at"] for report in reports) - called_at),
        sync_s=fmean(report["sync_s"] / report["steps"] for report in reports),
        transfers=tuple((mb, seconds) for report in reports for mb, seconds in report["singles"]),
    )
