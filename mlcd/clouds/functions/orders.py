"""What functions are told to do, as plain data, and what is concluded from a calibration's reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from mlcd.clouds.functions.dataset import Stored
from mlcd.clouds.functions.throttle import share_of
from mlcd.core.job import Job
from mlcd.planners.functions.nouns import (
    CALIBRATION_STEPS,
    SAMPLE,
    Allocation,
    Calibrated,
    FunctionsTask,
    StorageRate,
    Workload,
)

Order = dict[str, Any]
Report = dict[str, Any]

MEETING_S = 60.0
"""Functions wait so long for one that has not come: it may be starting."""
LOOKS_S, LOOKS_AWAY_S = 0.02, 0.25
"""Between two looks at a gate, on this machine and elsewhere."""
JUDGED = 10_000
"""Samples that the loss of an epoch is taken over, about: every so many-th of all, whoever holds it."""
KILOBYTE_MB = 0.001
LARGEST_MB = 32.0
"""Of a single transfer that is only there to measure."""
Faults = Callable[[int, int, int], str]
"""What goes wrong in a function, by epoch, rank and attempt, for tests; see `worker.py`."""


def no_faults(epoch: int, rank: int, attempt: int) -> str:
    """All goes well."""
    return ""


@dataclass(frozen=True)
class Orders:
    """For the functions of one launch. `name` is part of all names in a storage; `throttled`: they share a machine."""

    job: Job
    allocation: Allocation
    stored: Stored
    url: str
    name: str
    throttled: bool
    asks_s: float
    """For how long a storage that does not answer is asked again."""
    faults: Faults = no_faults

    def epoch(
        self, trial: int, epoch: int, begins_with: str | None, attempt: int, until: float, requests: int | None
    ) -> list[Order]:
        """Of an attempt at an epoch. Models are keys in the bucket; None is the one that training begins with."""
        common = self._common(trial, self.allocation, self._serverless.workload, until)
        models = {"from": begins_with, "into": self.model(trial, epoch, attempt)}
        return self._each({**common, **models}, trial, epoch, attempt, requests)

    def waiting(
        self, trial: int, epoch: int, gate: str, waits_until: float, attempt: int, until: float, requests: int | None
    ) -> list[Order]:
        """Of an attempt at an epoch whose model is not there yet: its key will be found under `gate`."""
        own = {"gate": gate, "waits_until": waits_until, "looks_s": LOOKS_S if self.throttled else LOOKS_AWAY_S}
        return [{**order, **own} for order in self.epoch(trial, epoch, None, attempt, until, requests)]

    def calibration(self, attempt: int, until: float, requests: int | None) -> list[Order]:
        """Of an attempt at a calibration."""
        common = self._common(0, self.allocation, self._serverless.workload, until)
        sizes_mb = _sizes_mb(self._serverless, self.allocation.storage)
        own = {"from": None, "sizes_mb": sizes_mb, "steps_most": CALIBRATION_STEPS}
        return self._each({**common, **own}, 0, 0, attempt, requests)

    def sample(self, trial: int, functions: int, epochs: int, until: float) -> list[Order]:
        """Of a sample of the data, which one function trains as so many would train all of it."""
        workload = self._serverless.workload.sampled(SAMPLE, functions)
        common = self._common(trial, replace(self.allocation, functions=1), workload, until)
        return [{**common, "from": None, "epochs": epochs, "rank": 0, "fault": "", "requests_most": None}]

    def group(self, trial: int, epoch: int, attempt: int) -> str:
        """Under which the functions of an attempt meet: never used before."""
        return f"{self.name}/{trial}-{epoch}-{attempt}"

    def model(self, trial: int, epoch: int, attempt: int) -> str:
        """The key of the model that an attempt makes."""
        return f"mlcd/models/{self.group(trial, epoch, attempt)}"

    def _each(self, common: Order, trial: int, epoch: int, attempt: int, requests: int | None) -> list[Order]:
        """For every rank. Rank 0, which collects from all others, may make as many requests as they together."""
        n, group = self.allocation.functions, self.group(trial, epoch, attempt)
        found = []
        for rank in range(n):
            most = None if requests is None else requests if n == 1 else requests // (2 if rank == 0 else 2 * (n - 1))
            own = {"rank": rank, "group": group, "requests_most": most, "fault": self.faults(epoch, rank, attempt)}
            found.append({**common, **own})
        return found

    @property
    def _serverless(self) -> FunctionsTask:
        assert isinstance(self.job.ask, FunctionsTask)
        return self.job.ask

    def _common(self, trial: int, allocation: Allocation, workload: Workload, until: float) -> Order:
        tuning = self._serverless.tuning
        drawn = {"learning_rate": workload.learning_rate}
        if tuning is not None:
            drawn |= tuning.drawn(trial, self.job.search.seed)
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
            "judged": max(1, workload.samples // JUDGED),
            "functions": allocation.functions,
            "share": share_of(allocation.memory_mb) if self.throttled else None,
            "storage": allocation.storage,
            "url": self.url,
            "asks_s": self.asks_s,
            "patience_s": MEETING_S,
            "until": until,
        }


def _sizes_mb(serverless: FunctionsTask, storage: str) -> tuple[float, ...]:
    """Of single transfers: a kilobyte, the model, and one apart from both that the storage can hold."""
    rate = serverless.tariff.storage(storage) if serverless.tariff is not None else StorageRate(storage)
    model_mb = serverless.workload.model_mb
    larger_mb = max(4 * model_mb, 100 * KILOBYTE_MB)
    third_mb = larger_mb if larger_mb <= min(LARGEST_MB, 0.9 * rate.largest_mb) else model_mb / 4
    return tuple(sorted({KILOBYTE_MB, model_mb, third_mb}))


def concluded(allocation: Allocation, workload: Workload, reports: Sequence[Report], called_at: float) -> Calibrated:
    """What a calibration has found out.

    Means over the functions: what one of them computes longer, the others wait for, so that the means of computing and
    of meeting add up to what a step takes for each of them.
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
