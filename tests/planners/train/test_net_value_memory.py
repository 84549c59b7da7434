"""Net value on jobs that fit few configurations: benchmarks/memory_bound.py has more of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlcd.catalog import load_offers
from mlcd.clouds.places.skypilot import SKYPILOT_PROBE
from mlcd.clouds.simulated import Simulated
from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Goal, Hints, Job, Objective, Search
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.place import cloud
from mlcd.core.runs.run import with_probe_limit
from mlcd.core.strategy import Finish, Probe, Round
from mlcd.planners.modeling.memory_need import NO_HINTS
from mlcd.planners.modeling.outlook import outlook, usual_probe_limit
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.planner import method
from mlcd.planners.train.space import grid
from mlcd.testing.promises import search_and_run

ONE_BILLION = Job(
    "one-billion",
    1e6,
    Goal(Objective.CHEAPEST, budget_usd=1_000.0),
    hints=Hints(parameters=1e9, flops_per_sample=6e12, global_batch=64),
    task={"resources": {"accelerators": ["H100", "L40S", "A100", "L4"]}},
)


def searched(job: Job, seed: int, parallel: int = 4):
    """The decision, the probes in order, and the seconds and dollars of every configuration that fits."""
    job = replace(job, search=replace(job.search, seed=seed, parallel=parallel))
    place = cloud("simulated", job)
    job, backend = with_probe_limit(job, usual_probe_limit(job, place.space)), place.backend
    assert isinstance(backend, Simulated)
    totals = {}
    for where in place.space.configurations:
        if backend.fits(job, where):
            seconds = job.work_samples / backend.true_samples_per_s(job, where)
            totals[where] = (seconds, where.usd(seconds))
    ledger, run, decision = search_and_run(method(job.search), job, place)
    assert job.search.max_probe_usd is not None
    assert all(m.usd <= job.search.max_probe_usd for m in ledger.account(run).history.measurements)
    return decision, ledger.account(run).history.measurements, totals


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_job_that_fits_few_configurations_is_certified_after_few_probes(seed):
    """These seeds were refused after 145, 141 and 125 probes, most of them sure to run out of memory."""
    decision, probes, totals = searched(ONE_BILLION, seed)
    assert decision.certified
    assert len(probes) <= 12
    assert totals[decision.configuration][1] <= 1.1 * min(usd for _, usd in totals.values())


@pytest.mark.parametrize("seed", [4, 5])
def test_no_probe_has_less_memory_than_one_that_ran_out_of_it(seed):
    _, probes, _ = searched(ONE_BILLION, seed, parallel=1)
    ran_out = []
    for probe in probes:
        where = probe.configuration
        for before in ran_out:
            assert where.offer.accelerator_memory_gb > before.offer.accelerator_memory_gb or (
                where.workers > before.workers
            ), f"{where} after {before}"
        if probe.outcome is Outcome.OUT_OF_MEMORY:
            ran_out.append(where)


def test_a_job_that_fits_nothing_is_refused_for_a_few_dollars():
    """70 billion parameters, a copy on every device: more than a terabyte each."""
    job = replace(ONE_BILLION, hints=Hints(parameters=70e9, flops_per_sample=6e12, global_batch=64))
    decision, probes, totals = searched(job, 0)
    assert not totals
    assert decision.configuration is None
    assert sum(probe.usd for probe in probes) < 0.08 * 1_000


@pytest.mark.parametrize("objective", [Objective.FASTEST, Objective.CHEAPEST])
def test_without_a_limit_a_job_that_fits_nothing_is_refused_after_few_probes(objective):
    """It took 48 and 222 probes and up to $4,243: one node more at a time of what was believed to be too small."""
    hints = Hints(parameters=8e9, flops_per_sample=43e12, global_batch=16)
    decision, probes, totals = searched(replace(ONE_BILLION, hints=hints, goal=Goal(objective)), 11)
    assert not totals
    assert decision.configuration is None
    assert len(probes) <= 20
    assert sum(probe.usd for probe in probes) < 400


LIVE = grid(load_offers(("aws",)), (1, 50), probe_time=SKYPILOT_PROBE)
RESNET = Hints(parameters=25e6, flops_per_sample=12e9, global_batch=256)


def first_step(goal: Goal, seed: int, hints: Hints = NO_HINTS) -> tuple[Configuration, ...]:
    step = NetValue(seed, look=0.3, parallel=4).next_step(Job("any", 1e8, goal, hints=hints), LIVE, History())
    assert isinstance(step, Probe | Round)
    return tuple(probe.configuration for probe in (step.probes if isinstance(step, Round) else (step,)))


@pytest.mark.parametrize("goal", [Goal(), Goal(deadline_s=6 * 3_600), Goal(Objective.CHEAPEST)])
@pytest.mark.parametrize("hints", [NO_HINTS, RESNET])
def test_without_a_budget_a_search_begins_with_cheap_probes(goal, hints):
    """It opened with up to 49 nodes of p5en.48xlarge, $1,861 for one probe."""
    for seed in range(3):
        together_usd = sum(LIVE.worst_probe(configuration)[1] for configuration in first_step(goal, seed, hints))
        assert together_usd < 50


@pytest.mark.parametrize("goal", [Goal(Objective.CHEAPEST, 1_000.0), Goal(Objective.CHEAPEST, deadline_s=80_000)])
def test_what_mlcd_plan_names_is_probed_after_the_first_probe(goal):
    job = replace(ONE_BILLION, goal=goal, search=Search(seed=1, max_probe_usd=100.0))
    place = cloud("simulated", job)
    planned = outlook(job, place.space).best
    _, probes, _ = searched(job, 1)
    first = NetValue(1, look=0.3, parallel=4).next_step(job, place.space, History())
    in_first_round = len(first.probes) if isinstance(first, Round) else 1
    assert planned in [probe.configuration for probe in probes[: in_first_round + 1]]


def test_what_mlcd_plan_names_is_not_probed_if_that_costs_much():
    """One probe of it takes a fifth of this budget."""
    job = replace(ONE_BILLION, goal=Goal(Objective.CHEAPEST, 150.0), work_samples=1e5)
    place = cloud("simulated", job)
    planned = outlook(job, place.space).best
    assert place.space.worst_probe(planned)[1] * 0.3 > 0.08 * 150
    _, probes, _ = searched(job, 1)
    assert probes[1].configuration != planned


def test_what_mlcd_plan_names_is_probed_again_only_if_worth_it():
    """A probe showed that it is far too slow for the limit, if not by how much."""
    place = cloud("simulated", ONE_BILLION)
    planned = outlook(ONE_BILLION, place.space).best
    assert planned is not None
    seen = Measurement(planned, Outcome.OK, 230.0, 28.0, samples_per_s=20.0, rel_error=0.15)
    step = NetValue(1, look=0.3).next_step(ONE_BILLION, place.space, History((seen,), spent_usd=28.0, elapsed_s=230.0))
    assert isinstance(step, Finish) or step.configuration != planned
