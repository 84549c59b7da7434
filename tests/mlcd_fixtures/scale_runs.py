"""An elastic run with made-up numbers, for tests of reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.decision import Decision, Forecast, Prediction
from mlcd.core.job import Goal, Job, Objective, Target
from mlcd.core.ledger import Decided, Ended, Entry, Ledger, Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.scale.nouns import Batch, Noise, ScalingTask, batch_of

NODE = Offer("node", 0.8, 4, 16)
BATCHES = (64, 128, 256, 512, 1024)
SPACE = Space((Choice(NODE, tuple(range(1, 9)), tuple(Batch(each) for each in BATCHES)),))
JOB = Job(
    "digits",
    5e5,
    Goal(Objective.KNEE, budget_usd=5.0),
    dataset_samples=60_000,
    target=Target("accuracy", 0.97),
    ask=ScalingTask((1, 8), BATCHES),
)
LATE = 1.08
"""The run takes so much longer than foreseen."""


def seconds(place: Configuration) -> float:
    """The critical batch is 300, and every further node costs a little synchronising."""
    batch = batch_of(place) or 1
    samples = 60_000 * 8 * (1 + batch / 300)
    step_s = 0.004 + 0.0006 * batch / place.nodes + 0.004 * (place.nodes > 1) + 0.0015 * (place.nodes - 1)
    return samples / batch * step_s


def curve(places: Sequence[Configuration] = SPACE.configurations, *, relative: bool = False) -> tuple[Prediction, ...]:
    """What each configuration takes; the ends of the space are measured, unless all is `relative`."""
    times = {place: seconds(place) for place in places}
    costs = {place: place.usd(time_s) for place, time_s in times.items()}
    best = [c for c in places if not any(times[d] <= times[c] and costs[d] < costs[c] for d in places)]
    knee = min(best, key=lambda place: times[place] * costs[place])
    found = []
    for place, time_s in times.items():
        measured = not relative and place.nodes in (1, 8) and batch_of(place) in (64, 1024)
        off = 0.0 if relative else 0.05 if measured else 0.15
        ends = time_s * (1 - off), time_s * (1 + off)
        told = (measured, relative, place in best, place == knee)
        found.append(Prediction(place, time_s, costs[place], *ends, *told))
    return tuple(found)


def elastic_run(
    ledger: Ledger,
    predicted: Sequence[Prediction] | None = None,
    *,
    job: Job = JOB,
    ended: bool = True,
    metric: float | None = 0.9712,
) -> str:
    """Two probes, a decision for the knee of the curve, and the job itself; returns the name of the run."""
    clock = VirtualClock()
    book = ledger.begin(job.name, clock, Started(job, SPACE, "local", Provenance.LIVE, "0.1.0"))
    for entry in _entries(book.run, tuple(curve() if predicted is None else predicted), ended, metric):
        if isinstance(entry, Settled):
            clock.wait(entry.measurement.seconds)
        book.write(entry)
    return book.run


def _entries(run: str, predicted: tuple[Prediction, ...], ended: bool, metric: float | None) -> Iterator[Entry]:
    for i, place in enumerate((Configuration(NODE, 1, Batch(64)), Configuration(NODE, 8, Batch(1024)))):
        order = Launch(f"{run}-{i}", place, Purpose.PROBE, 5e5, 60.0, i, i)
        noise = Noise(812.0, 0.04, stable=i > 0)
        seen = Measurement(place, Outcome.OK, 40.0, place.usd(40), 500.0 * place.nodes, 0.01, 2.0, 9e3, evidence=noise)
        yield Reserved(order, "an end of the space", place.usd(60), 60.0)
        yield Settled(order, seen)
    if not predicted:
        yield Decided(Decision(None, "nothing was learned", binding="nothing was measured"))
        return
    knee = next(p for p in predicted if p.knee)
    place, time_s = knee.configuration, seconds(knee.configuration)
    ahead = Forecast(time_s, place.usd(time_s), 1.3 * time_s, place.usd(1.3 * time_s))
    yield Decided(Decision(place, "the knee", certified=True, forecast=ahead, curve=predicted))
    if ended:
        took, order = LATE * time_s, Launch(f"{run}-2", place, Purpose.RUN, 5e5, 3_600.0, 2, 2)
        done = Measurement(place, Outcome.OK, took, place.usd(took), 900.0, 0.01, 2.0, 4e5, metric=metric)
        yield Reserved(order, "to its end", 1.0, 3_600.0)
        yield Settled(order, done)
        yield Ended(True, "the job ran to its end")
