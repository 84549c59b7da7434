"""Net value on jobs that fit few configurations: benchmarks/memory_bound.py has more of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlcd.assemble import cloud, method
from mlcd.backends import Simulated
from mlcd.job import Goal, Hints, Job, Objective, Search
from mlcd.measurement import Outcome
from mlcd.testing.promises import search_and_run

ONE_BILLION = Job(
    "one-billion",
    1e6,
    Goal(Objective.CHEAPEST, budget_usd=1_000.0),
    hints=Hints(parameters=1e9, flops_per_sample=6e12, global_batch=64),
    task={"resources": {"accelerators": ["H100", "L40S", "A100", "L4"]}},
)


def searched(job: Job, seed: int):
    """The decision, the probes in order, and the seconds and dollars of every configuration that fits."""
    job = replace(job, search=Search(seed=seed))
    place = cloud("simulated", job)
    backend = place.backend
    assert isinstance(backend, Simulated)
    totals = {}
    for where in place.space.configurations:
        if backend.fits(job, where):
            seconds = job.work_samples / backend.true_samples_per_s(job, where)
            totals[where] = (seconds, where.usd(seconds))
    ledger, run, decision = search_and_run(method(job.search), job, place)
    return decision, ledger.account(run).history.measurements, totals


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_job_that_fits_few_configurations_is_certified_after_few_probes(seed):
    """These seeds were refused after 145, 141 and 125 probes, most of them sure to run out of memory."""
    decision, probes, totals = searched(ONE_BILLION, seed)
    assert decision.certified
    assert len(probes) <= 12
    assert totals[decision.configuration][1] <= 1.15 * min(usd for _, usd in totals.values())


@pytest.mark.parametrize("seed", [4, 5])
def test_no_probe_has_less_memory_than_one_that_ran_out_of_it(seed):
    _, probes, _ = searched(ONE_BILLION, seed)
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
