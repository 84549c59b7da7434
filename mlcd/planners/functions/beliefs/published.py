"""AWS as others have described it: a calibration for planning before anything was measured. Modelled, and says so.

Links, reading and start are constants with a source each, in the table below. Computing is reasoned out:

    s_per_sample = PYTHON_S + 6 parameters reuse / VCPU_FLOPS      on one whole vCPU: 2 operations for each weight on
                                                                   the way forward, 4 backward, each weight used
                                                                   `reuse` times a sample (once unless convolved)
    u(m)         = s_per_sample samples / D / speed(m / 1,769 MB)
    speed(v)     = v up to one vCPU, 1 + parallel (v - 1) above    as Lambda documents its shares of a processor

What is 'from memory' could not be looked up again where this was written; what is 'assumed' nobody has measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.planners.functions.nouns import Calibration, Link
from mlcd.planners.functions.workload import LARGEST_MB, MB_PER_VCPU, SMALLEST_MB, StorageKind, Workload

LAMBDAML = "LambdaML (Jiang et al., SIGMOD 2021), table of constants, from memory"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number and where it is from."""

    value: float
    unit: str
    source: str


CONSTANTS = {
    "s3 latency": Constant(0.08, "s", f"{LAMBDAML}: 80 ms, +- 20"),
    "s3 bandwidth": Constant(65.0, "MB/s", f"{LAMBDAML}: 65 MB/s, +- 7"),
    "elasticache latency": Constant(0.01, "s", f"{LAMBDAML}: cache.t3.medium"),
    "elasticache bandwidth": Constant(630.0, "MB/s", f"{LAMBDAML}: cache.t3.medium, 630 MB/s, +- 25"),
    "vm-ps latency": Constant(0.000_15, "s", f"{LAMBDAML}: network of a c5.large"),
    "vm-ps bandwidth": Constant(225.0, "MB/s", f"{LAMBDAML}: network of a c5.large, 225 MB/s, +- 8"),
    "dynamodb latency": Constant(0.01, "s", "AWS promises 'single-digit milliseconds'; its upper end"),
    "dynamodb bandwidth": Constant(40.0, "MB/s", "assumed: 10 ms more for an item of the largest size, 400 KB"),
    "python": Constant(
        7e-6,
        "s a sample",
        "LambdaML, breakdown of LR on Higgs, from memory: 80 s for 10 epochs of 1.1 million samples on each function",
    ),
    "vcpu": Constant(
        1e10, "operations/s", "assumed: a quarter of what a 2.5 GHz core with 16 operations a cycle could"
    ),
    "parallel": Constant(0.8, "of a vCPU", "assumed: what each vCPU after the first adds"),
    "error": Constant(0.25, "relative", "the spread that LambdaML gives for the latency of S3, its least certain"),
}
"""Every number of this model. By name, so that a report can show it with its source."""

STARTS = ((10, 1.2), (50, 11.0), (100, 18.0), (200, 35.0))
"""Functions, and seconds until all are up, each started cold (LambdaML, table of constants, from memory)."""

REUSE = {"mobilenet": 14.0, "resnet50": 55.0, "bert-base": 400.0}
"""Multiplications a weight takes part in, for one sample. Convolutions of images of 32 x 32: 46 million in MobileNet's
3.2 million weights, 1.3 billion in ResNet50's 23.5 million (from memory); BERT: 512 tokens, embeddings apart."""


def published(workload: Workload, parallel: float = CONSTANTS["parallel"].value) -> Calibration:
    """What AWS would do with this workload, by published constants; `modelled` is set.

    `parallel`: what a second vCPU adds; 0 for code of one thread. Beyond the 200 functions of LambdaML the line through
    its starts is stretched.
    """
    return Calibration(
        compute=_compute(workload, REUSE.get(workload.model, 1.0), parallel),
        links={name: _link(name) for name in map(str, StorageKind)},
        load_mb_per_s=CONSTANTS["s3 bandwidth"].value,
        start=cold_start(),
        rel_error=CONSTANTS["error"].value,
        modelled=True,
        source="modelled: LambdaML's constants (SIGMOD 2021), AWS's documentation, assumed computing speed",
    )


def cold_start() -> tuple[float, float]:
    """Seconds, and seconds more for each function: the line through LambdaML's starts."""
    functions, seconds = np.array(STARTS).T
    each_s, once_s = np.polyfit(functions, seconds, 1)
    return float(once_s), float(each_s)


def s_per_sample(workload: Workload, reuse: float = 1.0) -> float:
    """Seconds that one whole vCPU takes for a sample."""
    parameters = workload.model_mb * 1e6 / 4
    return CONSTANTS["python"].value + 6 * parameters * reuse / CONSTANTS["vcpu"].value


def _compute(workload: Workload, reuse: float, parallel: float) -> tuple[tuple[float, float], ...]:
    s_per_mb = s_per_sample(workload, reuse) * workload.samples / workload.data_mb
    memories = (SMALLEST_MB, *range(MB_PER_VCPU, LARGEST_MB, MB_PER_VCPU), LARGEST_MB)
    return tuple((float(memory), s_per_mb / _speed(memory / MB_PER_VCPU, parallel)) for memory in memories)


def _speed(vcpus: float, parallel: float) -> float:
    return vcpus if vcpus <= 1 else 1 + parallel * (vcpus - 1)


def _link(name: str) -> Link:
    return Link(CONSTANTS[f"{name} latency"].value, CONSTANTS[f"{name} bandwidth"].value)
