"""A modelled calibration of AWS from published constants, for planning before anything was measured.

Links, reading and start are constants, each with its source. Computing is estimated:

    s_per_sample = PYTHON_S + 6 parameters reuse / VCPU_FLOPS      on one whole vCPU: 2 operations for each weight on
                                                                   the way forward, 4 backward, each weight used
                                                                   `reuse` times a sample (once unless convolved)
    u(m)         = s_per_sample samples / D / speed(m / 1,769 MB)
    speed(v)     = v up to one vCPU, 1 + parallel (v - 1) above    as Lambda documents its CPU shares

'From memory': the source could not be checked when this was written. 'Assumed': not measured by anybody.
"""

from __future__ import annotations

import numpy as np

from mlcd.planners.functions.nouns import Calibration, Link
from mlcd.planners.functions.workload import LARGEST_MB, MB_PER_VCPU, SMALLEST_MB, Workload

LINKS = {
    "s3": Link(0.08, 65.0),
    "dynamodb": Link(0.01, 40.0),
    "elasticache": Link(0.01, 630.0),
    "vm-ps": Link(0.000_15, 225.0),
}
"""Latency and bandwidth by LambdaML's table of constants (Jiang et al., SIGMOD 2021), from memory: S3 80 ms +- 20 and
65 MB/s +- 7; a cache.t3.medium 630 MB/s +- 25; the network of a c5.large 225 MB/s +- 8. DynamoDB: AWS promises
'single-digit milliseconds', of which this is the upper end; its bandwidth is assumed: 10 ms more for 400 KB."""
REL_ERROR = 0.25
"""The spread that LambdaML gives for the latency of S3, its least certain constant."""
PYTHON_S = 7e-6
"""LambdaML's breakdown of LR on Higgs, from memory: 80 s for 10 epochs of 1.1 million samples on each function."""
VCPU_FLOPS = 1e10
"""Operations a second, assumed: a quarter of what a 2.5 GHz core with 16 operations a cycle could."""
PARALLEL = 0.8
"""What each vCPU after the first adds, in vCPUs; assumed."""
STARTS = ((10, 1.2), (50, 11.0), (100, 18.0), (200, 35.0))
"""(functions, seconds until all have started), cold (LambdaML, table of constants, from memory)."""
REUSE = {"mobilenet": 14.0, "resnet50": 55.0, "bert-base": 400.0}
"""Multiplications per weight, for one sample. Convolutions of images of 32 x 32: 46 million in MobileNet's 3.2 million
weights, 1.3 billion in ResNet50's 23.5 million (from memory); BERT: 512 tokens, without embeddings."""


def published(workload: Workload, parallel: float = PARALLEL) -> Calibration:
    """The calibration of this workload on AWS by published constants; `modelled` is set.

    `parallel`: what each further vCPU adds; 0 for single-threaded code. Start-up times are extrapolated beyond the 200
    functions of LambdaML.
    """
    parameters, reuse = workload.model_mb * 1e6 / 4, REUSE.get(workload.model, 1.0)
    s_per_sample = PYTHON_S + 6 * parameters * reuse / VCPU_FLOPS
    s_per_mb = s_per_sample * workload.samples / workload.data_mb
    sizes = (SMALLEST_MB, *range(MB_PER_VCPU, LARGEST_MB, MB_PER_VCPU), LARGEST_MB)
    memories = [(memory, memory / MB_PER_VCPU) for memory in sizes]
    return Calibration(
        compute=tuple((float(m), s_per_mb / (min(1, v) + parallel * max(0, v - 1))) for m, v in memories),
        links=LINKS,
        load_mb_per_s=LINKS["s3"].mb_per_s,
        start=cold_start(),
        rel_error=REL_ERROR,
        modelled=True,
        source="modelled: LambdaML's constants (SIGMOD 2021), AWS's documentation, assumed computing speed",
    )


def cold_start() -> tuple[float, float]:
    """a and b of the start-up time a + b n: the line through LambdaML's start-up times."""
    functions, seconds = np.array(STARTS).T
    each_s, once_s = np.polyfit(functions, seconds, 1)
    return float(once_s), float(each_s)
