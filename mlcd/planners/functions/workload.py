"""What is trained on functions, how large it is, and what functions and storages cost."""

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
"""What a function needs beside its data: the interpreter, and the model as parameters, as gradient and as mean."""
CALIBRATION_STEPS = 24
"""Iterations of a calibration at the most, where requests are paid for."""


class StorageKind(StrEnum):
    """Where functions meet to exchange what they have learned."""

    S3 = "s3"
    DYNAMODB = "dynamodb"
    ELASTICACHE = "elasticache"
    VM_PS = "vm-ps"


STORAGES = tuple(str(kind) for kind in StorageKind)


@dataclass(frozen=True, slots=True)
class StorageRate:
    """What a storage costs and what it cannot do.

    Charged by the request, or by the minute that its server is up. `largest_mb`: what one object may hold.
    `aggregates`: it averages by itself, as a parameter server does.
    """

    name: str
    usd_per_request: float = 0.0
    usd_per_minute: float = 0.0
    largest_mb: float = math.inf
    aggregates: bool = False


@dataclass(frozen=True)
class Tariff:
    """What functions and storages cost, and since when that is known. `date` and `source` go into every report."""

    usd_per_gb_s: float
    usd_per_call: float
    storages: tuple[StorageRate, ...]
    cloud: str = ""
    region: str = ""
    date: str = ""
    source: str = ""
    usd_per_put: float = 0.0
    usd_per_get: float = 0.0
    """Of requests to a bucket; to list costs as much as to put."""

    def storage(self, name: str) -> StorageRate:
        """The rate of the storage of that name."""
        return next(rate for rate in self.storages if rate.name == name)

    def usd_per_function_s(self, memory_mb: float) -> float:
        """p_f(m)."""
        return self.usd_per_gb_s * memory_mb / 1_024


@dataclass(frozen=True, slots=True)
class Workload:
    """What is trained, and how large it is.

    `model` and `data` are names of MLCD's own, or `module:Class` beside the job file. `batch`: samples that one
    function takes in an iteration.
    """

    model: str
    data: str
    samples: int
    data_mb: float
    model_mb: float
    batch: int
    learning_rate: float = 0.01

    def sampled(self, share: float, functions: int) -> Workload:
        """A part of it that one function trains as so many would train the whole: as often, on smaller batches."""
        samples = max(1, round(self.samples * share))
        batch = max(1, round(self.batch * functions * share))
        return replace(self, samples=samples, data_mb=self.data_mb * share, batch=batch)

    def needs_mb(self, functions: int) -> float:
        """Memory below which a function cannot hold its share of the data and the model."""
        return RUNTIME_MB + COPIES * self.model_mb + self.data_mb / functions

    def iterations(self, functions: int) -> int:
        """k: the times that the functions meet in an epoch; a last, smaller batch counts."""
        return max(1, math.ceil(self.samples / (functions * self.batch)))
