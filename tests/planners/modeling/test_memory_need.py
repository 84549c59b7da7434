"""The belief about a job's memory, compared with the simulated cloud."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.catalog import load_offers
from mlcd.clouds.simulated import Simulated
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.job import Hints, Job
from mlcd.planners.modeling.memory_need import NO_HINTS, MemoryNeed, cannot_fit, draw_memory_need
from mlcd.planners.train.space import grid
from mlcd.testing.clouds import small_recording

NODES = (1, 2, 3, 4, 5, 8, 16, 32, 33, 50)
SPACE = Space(tuple(Choice(offer, NODES) for offer in load_offers(("aws",))))
NONE = np.array([], dtype=np.intp)
JOBS = st.builds(
    Hints,
    parameters=st.floats(1e8, 7e10),
    flops_per_sample=st.floats(1e10, 1e14),
    global_batch=st.integers(1, 2_048),
)


def fitting(hints: Hints) -> np.ndarray:
    """The truth of the simulated cloud."""
    backend, job = Simulated(VirtualClock()), Job("any", 1e6, hints=hints)
    return np.array([backend.fits(job, configuration) for configuration in SPACE.configurations])


@given(JOBS, st.integers(0, 2**32 - 1))
def test_nothing_that_fits_is_ever_ruled_out(hints, seed):
    fits, rng = fitting(hints), np.random.default_rng(seed)
    too_small = np.flatnonzero(~fits)
    seen = rng.choice(too_small, min(5, len(too_small)), replace=False) if len(too_small) else NONE
    ruled_out = cannot_fit(SPACE, NONE, seen)
    assert ruled_out[seen].all()
    assert not (ruled_out & fits).any()


def on(space: Space, where: str) -> np.ndarray:
    """The row of '4 x p5.48xlarge'."""
    return np.array([i for i, c in enumerate(space.configurations) if str(c) == where])


def test_fewer_nodes_of_a_type_and_fewer_devices_with_less_memory_are_ruled_out():
    ruled_out = cannot_fit(SPACE, NONE, on(SPACE, "4 x p5.48xlarge"))  # 32 devices of 80 GB
    names = {str(SPACE.configurations[i]) for i in np.flatnonzero(ruled_out)}
    assert {"1 x p5.48xlarge", "4 x p5.48xlarge", "4 x p4d.24xlarge", "32 x g6.xlarge"} <= names
    assert not names & {"5 x p5.48xlarge", "5 x p4d.24xlarge", "33 x g6.xlarge", "1 x p5en.48xlarge"}
    assert not any(name.endswith("r5.24xlarge") for name in names)  # of CPUs, an accelerator's memory says nothing


def test_unpublished_memory_rules_out_no_other_type():
    unknown = [Offer(name, 1.0, 8, 64.0, "A100", 4, 19.5, 0.0) for name in ("small", "large")]
    space = grid(tuple(unknown), (1, 4))
    ruled_out = cannot_fit(space, NONE, np.array([space.index[Configuration(unknown[1], 3)]]))
    assert [space.configurations[i] for i in np.flatnonzero(ruled_out)] == [
        Configuration(unknown[1], nodes) for nodes in (1, 2, 3)
    ]


def test_a_failure_contradicted_by_a_success_rules_out_nothing():
    space = small_recording([[1.0] * 8], [1.0]).space
    assert cannot_fit(space, NONE, np.array([5])).sum() == 6
    assert not cannot_fit(space, np.array([2]), np.array([5])).any()
    assert cannot_fit(space, np.array([6]), np.array([5])).sum() == 6


def fit_probability(hints: Hints, space: Space = SPACE) -> np.ndarray:
    need = draw_memory_need(space, hints, np.random.default_rng(0), 500)
    return 1 - need.too_small(np.arange(500), np.arange(len(space))).mean(axis=0)


@given(JOBS)
def test_hints_predict_what_fits_better_than_none(hints):
    """Log score of the prior on the cloud for which the hints are true; if everything fits, both priors are right."""
    fits = fitting(hints)

    def score(probability: np.ndarray) -> float:
        return float(np.log(np.clip(np.where(fits, probability, 1 - probability), 1e-3, 1)).mean())

    assert score(fit_probability(hints)) > score(fit_probability(NO_HINTS)) - 0.1


def test_evidence_overrides_hints():
    """They may be wrong, or the state sharded: 70 billion parameters may still fit, and 10 million may not."""
    huge = fit_probability(Hints(parameters=70e9, flops_per_sample=1e13, global_batch=64))
    tiny = fit_probability(Hints(parameters=1e7, flops_per_sample=1e9, global_batch=64))
    assert 0.1 < huge[on(SPACE, "50 x p5en.48xlarge")] < 0.6
    assert 0.9 < tiny[on(SPACE, "1 x g6.xlarge")] < 1


def test_where_memory_is_not_published_hints_in_gigabytes_are_not_used():
    space = replace(
        SPACE, choices=tuple(replace(c, offer=replace(c.offer, accelerator_memory_gb=0.0)) for c in SPACE.choices)
    )
    hints = Hints(parameters=70e9)
    assert fit_probability(hints, space) == pytest.approx(fit_probability(NO_HINTS, space))


def test_more_devices_or_more_memory_never_need_more():
    need: MemoryNeed = draw_memory_need(SPACE, Hints(1e9, 6e12, 64), np.random.default_rng(1), 200)
    p5, p5en = (
        [i for i, c in enumerate(SPACE.configurations) if c.offer.instance_type == t]
        for t in ("p5.48xlarge", "p5en.48xlarge")
    )
    small = need.too_small(np.arange(200), np.array(p5))
    assert (small[:, :-1] >= small[:, 1:]).all()
    assert (small >= need.too_small(np.arange(200), np.array(p5en))).all()
