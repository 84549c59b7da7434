"""What had to be kept after each probe: found along the way, it is what going through everything each time finds."""

from __future__ import annotations

import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures import serving_runs

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.decision import Forecast
from mlcd.core.forecasts import forecast, objective, remaining_job
from mlcd.core.guarantee import certifiable
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve import service_level
from mlcd.planners.serve.nouns import Figure, ServingTask
from mlcd.reports.reserves import reserves

SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1, 2, 3)), Choice(Offer("large", 3.0, 8, 32), (1, 2))))
MANY = Space((Choice(Offer("node", 1.0, 4, 16), tuple(range(1, 3_001))),))
FAILED = Measurement(SPACE.configurations[0], Outcome.OUT_OF_MEMORY, 10.0, 0.1)


def from_scratch(job: Job, space: Space, after: History) -> Forecast | None:
    """The plain way."""
    if isinstance(job.ask, ServingTask):
        found = service_level.best(job, after.good)
        if found is None or service_level.certifies(job, found):
            return None
        seconds, usd = space.worst_probe(found.configuration)
        return Forecast(seconds, usd, seconds, usd)
    left, goal = remaining_job(job, after), job.goal
    if protected := certifiable(left, space, after):
        return min((forecast(left, space, after, m) for m in protected), key=lambda ahead: objective(goal, ahead))

    def excess(ahead: Forecast) -> float:
        return max(ahead.worst_usd / (goal.budget_usd or 1e99), ahead.worst_seconds / (goal.deadline_s or 1e99))

    return min((forecast(left, space, after, m) for m in after.good), key=excess, default=None)


def histories(probes: list[Measurement], runs: list[Measurement]) -> list[History]:
    """How a run stood after each probe; launches of the job come between them."""
    found, gone = [], History()
    for i, probe in enumerate(probes):
        gone = replace(
            gone,
            measurements=(*gone.measurements, probe),
            spent_usd=gone.spent_usd + probe.usd,
            elapsed_s=gone.elapsed_s + probe.seconds,
        )
        found.append(gone)
        gone = gone.with_run(runs[i]) if i < len(runs) else gone
    return found


@st.composite
def launches(draw: st.DrawFn) -> Measurement:
    """Few different values, so that there are ties."""
    if draw(st.integers(0, 5)) == 0:
        return FAILED
    place, seconds = draw(st.sampled_from(SPACE.configurations)), draw(st.sampled_from((10.0, 60.0)))
    return Measurement(
        place,
        Outcome.OK,
        seconds,
        place.usd(seconds),
        draw(st.sampled_from((50.0, 100.0, 200.0, 333.0))),
        draw(st.sampled_from((0.0, 0.02, 0.3))),
        saved_samples=draw(st.sampled_from((0.0, 0.0, 0.0, 4e4, 9e4))),
    )


LIMITS_USD = st.sampled_from((None, 0.1, 0.5, 1.0, 2.0))
LIMITS_S = st.sampled_from((None, 100.0, 600.0, 2_000.0))


@given(
    st.lists(launches(), max_size=12),
    st.lists(launches(), max_size=3),
    st.sampled_from((Objective.CHEAPEST, Objective.FASTEST, Objective.KNEE)),
    LIMITS_USD,
    LIMITS_S,
)
def test_the_reserve_of_a_job_is_that_of_the_plain_way(
    probes: list[Measurement],
    runs: list[Measurement],
    wanted: Objective,
    budget_usd: float | None,
    deadline_s: float | None,
) -> None:
    job, stood = Job("job", 1e5, Goal(wanted, budget_usd, deadline_s)), histories(probes, runs)
    assert reserves(job, SPACE, stood) == [from_scratch(job, SPACE, history) for history in stood]


TRIALS = st.builds(
    lambda place, rate, p95_s, spread: serving_runs.answered(place, rate, {Figure.P95: p95_s}, spread),
    st.sampled_from(serving_runs.SPACE.configurations[:5]),
    st.sampled_from((100.0, 200.0)),
    st.sampled_from((0.02, 0.029, 0.04)),
    st.sampled_from((0.01, 0.6, 2.0)),
)


@given(st.lists(TRIALS, max_size=10))
def test_the_reserve_of_a_service_is_that_of_the_plain_way(trials: list[Measurement]) -> None:
    job, space, stood = serving_runs.JOB, serving_runs.SPACE, histories(trials, [])
    assert reserves(job, space, stood) == [from_scratch(job, space, history) for history in stood]


def test_the_reserves_of_three_thousand_probes_take_no_longer_than_a_look() -> None:
    probes = [Measurement(c, Outcome.OK, 9.0, 0.01, 1e3 / c.nodes, 0.02) for c in MANY.configurations]
    stood = histories(probes, [])
    began_s = time.process_time()
    found = reserves(Job("job", 1e5, Goal(Objective.CHEAPEST, 25.0)), MANY, stood)
    assert time.process_time() - began_s < 2.0, "all of them again after each probe would take a minute"
    assert None not in found
