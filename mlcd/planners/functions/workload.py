"""A workload on functions and its sizes; the prices of functions and storages; Lambda's limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

MB_PER_VCPU = 1_769
"""Lambda gives a function one whole vCPU at this much memory, and shares of one below, in proportion."""
MOST_FUNCTIONS = 3_000
SMALLEST_MB, LARGEST_MB = 128, 10_240
LONGEST_CALL_S = 900.0
"""Lambda ends a call after a quarter of an hour; an epoch is one call of each of its functions."""
RUNTIME_MB, COPIES = 64.0, 3
"""Memory of a function besides its data: the interpreter, and the model three times: parameters, gradient, mean."""
CALIBRATION_STEPS = 24
"""Most iterations of a calibration, where requests are billed."""


class StorageKind(StrEnum):
    """The storages through which functions exchange gradients."""

    S3 = "s3"
    DYNAMODB = "dynamodb"
    ELASTICACHE = "elasticache"
    VM_PS = "vm-ps"


STORAGES = tuple(str(kind) for kind in StorageKind)


@dataclass(frozen=True, slots=True)
class StorageRate:
    """The prices and limits of a storage.

    Billed by the request, or by the minute that its server runs. `largest_mb`: the largest object. `aggregates`:
    whether it averages gradients itself, as a parameter server does.
    """

    name: str
    usd_per_request: float = 0.0
    usd_per_minute: float = 0.0
    largest_mb: float = math.inf
    aggregates: bool = False


@dataclass(frozen=True)
class Tariff:
    """The prices of functions and storages, with their date and source, which go into every report."""

    usd_per_gb_s: float
    usd_per_call: float
    storages: tuple[StorageRate, ...]
    cloud: str = ""
    region: str = ""
    date: str = ""
    source: str = ""
    usd_per_put: float = 0.0
    usd_per_get: float = 0.0
    """Prices of requests to a bucket; a list request costs as much as a put."""

    def storage(self, name: str) -> StorageRate:
        """The rate of the storage of that name."""
        return next(rate for rate in self.storages if rate.name == name)

    def usd_per_function_s(self, memory_mb: float) -> float:
        """p_f(m): the price of a second of a function."""
        return self.usd_per_gb_s * memory_mb / 1_024


@dataclass(frozen=True, slots=True)
class Workload:
    """The model and data that are trained, and their sizes.

    `model` and `data` are names known to MLCD, or `module:Class` beside the job file. `batch`: samples of one function
    in an iteration.
    """

    model: str
    data: str
    samples: int
    data_mb: float
    model_mb: float
    batch: int
    learning_rate: float = 0.01

    def sampled(self, share: float, functions: int) -> Workload:
        """A share of the data for one function, with as many iterations as so many functions need for all of it."""
        samples = max(1, round(self.samples * share))
        batch = max(1, round(self.batch * functions * share))
        return replace(self, samples=samples, data_mb=self.data_mb * share, batch=batch)

    def needs_mb(self, functions: int) -> float:
        """The least memory of a function for the model and its share of the data."""
        return RUNTIME_MB + COPIES * self.model_mb + self.data_mb / functions

    def iterations(self, functions: int) -> int:
        """k: exchanges of gradients in an epoch; a last, smaller batch counts."""
        return max(1, math.ceil(self.samples / (functions * self.batch)))
