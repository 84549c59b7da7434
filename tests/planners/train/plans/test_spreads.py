"""How far a model may be from what is expected, by the kind of its code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mlcd_fixtures.training_runs import run

from mlcd.planners.train.nouns import TrainingPlan
from mlcd.planners.train.plans.belief import Tried, believe_times
from mlcd.planners.train.plans.facts import Facts
from mlcd.planners.train.plans.prior import shipped_prior
from mlcd.planners.train.plans.spreads import Judged, learn_spreads, unit_of

PRIOR = shipped_prior().time


def by(kernels: str, micro_batch: int = 1) -> Facts:
    return run(TrainingPlan(micro_batch=micro_batch, kernels=kernels), gpus=8)


def judged(kernels: str, squared: float, looks: float = 3.0, count: int = 20) -> Judged:
    return Judged([by(kernels)] * count, np.full(count, squared), looks)


def test_code_that_does_as_expected_is_believed_more_and_code_that_does_not_less() -> None:
    spreads = learn_spreads([judged("steady", 0.2)] * 4 + [judged("odd", 3.0)] * 4)
    assert unit_of([by("steady")], spreads) < 0.85
    assert unit_of([by("odd")], spreads) > 1.2


def test_what_few_models_show_is_shrunk_however_many_runs_they_have() -> None:
    one = unit_of([by("steady")], learn_spreads([judged("steady", 0.2, count=500)]))
    many = unit_of([by("steady")], learn_spreads([judged("steady", 0.2)] * 9))
    assert np.sqrt(0.2) < many < one < 1


def test_code_of_which_nobody_has_seen_more_than_its_form_has_the_spread_of_that() -> None:
    spreads = learn_spreads([judged("steady", 0.2)] * 4)
    assert unit_of([by("steady")], spreads) < unit_of([by("unheard-of")], spreads) < 1
    assert unit_of([by("unheard-of")], {}) == 1.0


def test_intervals_are_narrower_by_that_factor_about_the_same_middle() -> None:
    candidates = [by("steady", micro_batch) for micro_batch in (1, 2, 4, 8)]
    usual = believe_times(candidates, Tried.nothing(), 0, 256, replace(PRIOR, spreads={}))
    steady = replace(PRIOR, spreads={"kernels steady": 2 * np.log(0.7)})
    narrower = believe_times(candidates, Tried.nothing(), 0, 256, steady)
    np.testing.assert_allclose(narrower.std(axis=0), 0.7 * usual.std(axis=0))
    np.testing.assert_allclose(np.median(narrower, axis=0), np.median(usual, axis=0), atol=0.02)


def test_a_probe_moves_the_others_as_far_whatever_the_spread() -> None:
    candidates = [by("steady", micro_batch) for micro_batch in (1, 2, 4, 8)]
    none = np.zeros(0, dtype=np.intp)
    seconds = np.exp(np.median(believe_times(candidates, Tried.nothing(), 0, 256, PRIOR), axis=0)[:1] + 0.1)
    probe = Tried(np.array([0]), seconds, np.array([1e-4]), none, np.array([np.nan]))
    usual, narrower = (
        np.median(believe_times(candidates, probe, 0, 256, replace(PRIOR, spreads=spreads)), axis=0)
        for spreads in ({}, {"kernels steady": 2 * np.log(0.9)})
    )
    assert narrower == pytest.approx(usual, abs=0.03)
