"""Fig. 19: models from 6.4 million to 20 billion parameters.

The two largest (ZeRO, Rajbhandari et al., 2019) fit no device: their state is spread over all devices and their
activations are checkpointed, one sample at a time on a device.

Symbols   L, H   layers, hidden size, with 12 L H^2 parameters      1,024 tokens a sample, 6 FLOP a parameter and token
"""

from __future__ import annotations

from dataclasses import replace

from mlcd.clouds.recording import Point
from mlcd.clouds.simulated import Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import Hints, Job
from mlcd.core.measurement import Outcome
from mlcd.planners.modeling.physics import STATE_BYTES_PER_PARAMETER, device_gb
from mlcd_bench.paper.cloud import fastest, testbed
from mlcd_bench.paper.entrants import BEYOND, CONVBO, HETERBO, NET_VALUE, OPT, OURS, SHIPPED
from mlcd_bench.paper.measures import advantage, advantages, at_least, median, saving
from mlcd_bench.paper.study import Case, Claim, Measured, Runs, Study, Unit
from mlcd_bench.simulated import JOBS, SimulatedRecording

TOKENS = 1_024
BATCH = 512
LAYERS = {"8B": (72, 3_072), "20B": (98, 4_096)}
PUBLISHED = {"6.4M": "alexnet", "60.3M": "resnet", "340M": "bert"}
SIZES = (*PUBLISHED, *LAYERS)
SMALL, LARGE = SIZES[0], SIZES[-1]


def _cases(seed: int) -> list[Case]:
    recordings = {size: testbed(JOBS[name], seed) for size, name in PUBLISHED.items()}
    recordings |= {size: spread(size, seed) for size in LAYERS}
    return [Case(size, fastest(recordings[size])) for size in SIZES]


def spread(size: str, seed: int) -> SimulatedRecording:
    """A model of ZeRO's size on the testbed, with its state sharded over all devices."""
    layers, hidden = LAYERS[size]
    parameters = 12.0 * layers * hidden**2
    job = Job(f"zero-{size}", 1e6, hints=Hints(parameters, 6 * parameters * TOKENS, BATCH))
    backend = Simulated(VirtualClock(), seed)
    activations_gb = layers * hidden * TOKENS * 2 / 1e9  # the inputs of each layer, in 16 bits

    def point(configuration: Configuration) -> Point:
        devices = configuration.nodes * configuration.offer.workers
        needed_gb = STATE_BYTES_PER_PARAMETER * parameters / 1e9 / devices + activations_gb
        if needed_gb > device_gb(configuration.offer):
            return Point(Outcome.OUT_OF_MEMORY)
        return Point(Outcome.OK, backend.true_samples_per_s(job, configuration))

    recording = testbed(job, seed)
    return replace(recording, points={configuration: point(configuration) for configuration in recording.points})


def _trend(runs: Runs, who: str) -> Measured:
    """The median speed-up with the largest model over that with the smallest."""
    small, large = (median(advantages(runs, size, who, CONVBO.label, "total_hours")) for size in (SMALL, LARGE))
    return at_least([large / small] if small and large else [], 6.5 / 1.3)


CLAIMS = (
    Claim(
        "Fig. 19", "The speedup improves from 1.3x (6.4M parameters; total time against ConvBO)", "1.3x", 1.3, BEYOND,
        Unit.TIMES, advantage(SMALL, CONVBO.label, "total_hours", 1.3),
    ),
    Claim(
        "Fig. 19", "to 6.5x (20B parameters)", "6.5x", 6.5, BEYOND, Unit.TIMES,
        advantage(LARGE, CONVBO.label, "total_hours", 6.5),
    ),
    Claim("Fig. 19", "as model size increases", "5x from 6.4M to 20B", 5.0, OURS, Unit.TIMES, _trend),
    Claim(
        "Fig. 19", "and the cost saving increases from 69 % (6.4M)", "69 %", 0.69, BEYOND, Unit.SHARE,
        saving(SMALL, CONVBO.label, "total_usd", 0.69),
    ),
    Claim(
        "Fig. 19", "to 92 % (20B)", "92 %", 0.92, BEYOND, Unit.SHARE, saving(LARGE, CONVBO.label, "total_usd", 0.92),
    ),
)  # fmt: skip

STUDY = Study(
    "model-sizes",
    (19,),
    "HeterBO against ConvBO for models of 6.4M to 20B parameters",
    "AlexNet (6.4M), ResNet (60.3M), BERT (340M), and ZeRO's 8B and 20B, which the paper simulated too. Scenario and "
    "training times are in no text.",
    "Fastest without a limit on the 25 types, every job 3.75 h at best. 8B and 20B: 72 layers of 3,072 and 98 of "
    "4,096, 1,024 tokens a sample, state spread over all devices as ZeRO does.",
    _cases,
    (CONVBO, HETERBO, NET_VALUE, SHIPPED, OPT),
    CLAIMS,
    seeds=10,
)
