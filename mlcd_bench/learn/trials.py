"""Measures a model as `mlcd serve` tries it: our own server under load, one trial for each batch.

The rates include the server's overhead: receiving requests, waiting for a batch, sending answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from mlcd.clouds.serving.live import Embedded
from mlcd.clouds.serving.trial import Timing
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Figure, ServerSettings, ServingTask, served_by
from mlcd_bench.learn.cells_process import Batch, Stopped

LONGEST_S = 10.0
PACE = Timing(every_s=0.2)
"""Frequent reports allow short trials."""
TIGHT = 0.25
"""A trial may end once its rate has this interval; many trials are learned from together."""


def measure_trials(
    model: Path,
    precision: str,
    threads: int,
    batches: Sequence[int],
    shapes: Mapping[str, int],
    stop: Callable[[], bool] = lambda: False,
) -> list[Batch]:
    """Every batch, in ascending order."""
    service = ServingTask(ModelFacts(model.stem), path=str(model.resolve()), shapes=shapes, trial_s=LONGEST_S)
    job = Job(model.stem, 0.0, ask=service)
    results = []
    with TemporaryDirectory(prefix="mlcd-learn-") as home:
        for batch in sorted(batches):
            if stop():
                raise Stopped
            profiler = ServingProfiler(
                Embedded(Path(home), WallClock(datetime.now(UTC)), PACE), noise_floor=0.01, tight=TIGHT
            )
            knobs = (("precision", precision), ("threads", threads), ("batch", batch))
            place = Configuration(Offer("this machine", 1.0, float(threads), 1.0), 1, ServerSettings(knobs))
            label = f"learn-{model.stem}-{precision}-{threads}-{batch}"
            order = Launch(label, place, Purpose.PROBE, 0.0, LONGEST_S, batch)
            results.append(_batch(batch, profiler.measure(job, order)))
    return results


def _batch(batch: int, shown: Measurement) -> Batch:
    served = served_by(shown)
    if not shown.ok:
        return Batch(batch, reason=shown.ending)
    middle, high = served.figures[Figure.P50], served.figures[Figure.P95]
    return Batch(batch, shown.rate, middle, high, served.peak_gb)
