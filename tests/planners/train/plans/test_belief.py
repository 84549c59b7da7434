"""Prior and posterior samples of step times."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from mlcd_fixtures.training_runs import LLAMA_8B, run

from mlcd.catalog.gpus import gpu_named
from mlcd.core.configuration import Floats
from mlcd.planners.train.nouns import Checkpointing, TrainingPlan
from mlcd.planners.train.plans.belief import PlanBelief, ProbeResults, believe_plans, believe_times, expected_of
from mlcd.planners.train.plans.prior import TimePrior, read_time_prior, shipped_prior, written_time_prior
from mlcd.planners.train.plans.run_spec import MeasuredRun, RunSpec
from mlcd.planners.train.plans.step_time_law import PARTS, TERMS, terms_of
from mlcd.planners.train.plans.time_effects import Rows
from mlcd.planners.train.plans.time_learning import learn_time

PRIOR = shipped_prior().time
CANDIDATES = [
    run(TrainingPlan(tensor=t, pipeline=p, micro_batch=m, checkpointing=c), gpus=32)
    for t, p, m, c in product((1, 2, 8), (1, 2), (1, 2, 4, 8), (Checkpointing.NONE, Checkpointing.FULL))
]
NONE = np.zeros(0, dtype=np.intp)


def tried(rows: list[int], seconds: list[float], error: float = 0.01) -> ProbeResults:
    at = np.array(rows, dtype=np.intp)
    return ProbeResults(at, np.array(seconds), np.full(len(at), error), NONE, np.full(len(at), np.nan))


def surfaces(
    probes: ProbeResults, draws: int = 256, candidates: list[RunSpec] = CANDIDATES, prior: TimePrior = PRIOR
) -> Floats:
    return believe_times(candidates, probes, 0, draws, prior)


def test_a_measured_candidate_has_its_measured_time() -> None:
    belief = surfaces(tried([3, 7], [2.0, 3.0]))
    np.testing.assert_allclose(belief[:, [3, 7]].mean(axis=0), np.log([2.0, 3.0]), atol=0.005)
    assert belief[:, [3, 7]].std(axis=0).max() < 0.02


def test_a_probe_informs_the_others_and_similar_ones_most() -> None:
    before = surfaces(ProbeResults.nothing())
    slower = np.median(before[:, 5]) + 0.4
    after = surfaces(tried([5], [float(np.exp(slower))]))
    moved = np.median(after, axis=0) - np.median(before, axis=0)
    assert moved[5] == pytest.approx(0.4, abs=0.02)
    assert (moved > 0).mean() > 0.95
    like_it, unlike_it = CANDIDATES.index(replace_plan(5, micro_batch=8)), CANDIDATES.index(replace_plan(5, tensor=8))
    assert moved[like_it] > moved[unlike_it]
    assert after.std(axis=0).mean() < before.std(axis=0).mean()


def replace_plan(row: int, **knobs: int) -> RunSpec:
    return replace(CANDIDATES[row], plan=replace(CANDIDATES[row].plan, **knobs))  # type: ignore[arg-type]


def test_intervals_cover_draws_from_the_prior() -> None:
    """The truth is a prior sample; after three probes, 90 % intervals should hold about 90 % of the others."""
    truths = surfaces(ProbeResults.nothing(), draws=40)
    held = []
    for i, truth in enumerate(truths):
        rows = np.random.default_rng(i).choice(len(CANDIDATES), 3, replace=False)
        left = np.setdiff1d(np.arange(len(CANDIDATES)), rows)
        belief = believe_times(CANDIDATES, tried(rows.tolist(), np.exp(truth[rows]).tolist(), 1e-4), 1, 256, PRIOR)
        low, high = np.quantile(belief[:, left], (0.05, 0.95), axis=0)
        held.append(np.mean((low <= truth[left]) & (truth[left] <= high)))
    assert 0.84 < np.mean(held) < 0.96


def test_a_more_precise_probe_narrows_the_interval_more() -> None:
    middle = float(np.median(surfaces(ProbeResults.nothing())[:, 0]))
    moved = [np.median(surfaces(tried([0], [float(np.exp(middle + 0.3))], error))[:, 1]) for error in (0.01, 0.3)]
    assert moved[0] > moved[1] > np.median(surfaces(ProbeResults.nothing())[:, 1]) - 0.02


def test_an_unknown_gpu_is_less_certain() -> None:
    known = [run(TrainingPlan(micro_batch=2), gpu=gpu_named("H100"))]
    new = [replace(known[0], gpu=replace(known[0].gpu, name="B999"))]
    spread = [surfaces(ProbeResults.nothing(), candidates=each).std() for each in (known, new)]
    assert spread[1] > spread[0]


def test_an_effect_on_a_part_of_the_law_goes_through_the_law() -> None:
    """With much slower memory, a run waits less for the host: an effect that is not linear."""
    prior = replace(PRIOR, effects=dict.fromkeys(PRIOR.effects, 0.0) | {"gpu H100 memory": 1.5})
    coefficients = [
        value * np.exp(1.5 * (name in PARTS["memory"])) for name, value in zip(TERMS, PRIOR.coefficients, strict=True)
    ]
    _, middle, _ = expected_of(CANDIDATES, prior)
    np.testing.assert_allclose(middle, terms_of(CANDIDATES).log_step(np.array(coefficients)))


def test_the_same_seed_gives_the_same_belief_and_the_candidates_may_be_a_copy() -> None:
    probes = tried([1], [4.0])
    one, two = (believe_plans(each, probes, seed=3, draws=32) for each in (CANDIDATES, list(CANDIDATES)))
    np.testing.assert_array_equal(one.log_step_s, two.log_step_s)
    np.testing.assert_array_equal(one.fits, two.fits)


def test_what_ran_out_of_memory_is_ruled_out_and_never_fits() -> None:
    probes = replace(ProbeResults.nothing(), out_of_memory=np.array([6], dtype=np.intp))
    belief = believe_plans(CANDIDATES, probes, draws=32)
    assert belief.ruled_out[6]
    assert not belief.fits[:, belief.ruled_out].any()
    assert belief.log_step_s.shape == belief.fits.shape == (32, len(CANDIDATES))


def test_an_interval_covers_its_share_of_the_samples() -> None:
    logs = np.log(np.arange(1, 102, dtype=float))[:, None]
    belief = PlanBelief(logs, np.ones((101, 1), bool), np.zeros(1, bool), np.ones(1))
    assert [round(float(each[0])) for each in belief.interval(0.9)] == [6, 51, 96]


def test_a_time_prior_survives_a_round_trip_through_its_file() -> None:
    read = read_time_prior(json.loads(json.dumps(written_time_prior(PRIOR, TERMS, "test"))))
    np.testing.assert_allclose(read.coefficients, PRIOR.coefficients, rtol=1e-3)
    np.testing.assert_allclose(read.spread, PRIOR.spread, atol=1e-4)
    assert list(read.effects) == list(PRIOR.effects)
    assert read.noise == pytest.approx(PRIOR.noise, rel=0.01)


def test_the_shipped_prior_has_every_kind_of_effect() -> None:
    rows = Rows(CANDIDATES, [""] * len(CANDIDATES), terms_of(CANDIDATES).shares(PRIOR.coefficients))
    every = np.arange(2)
    assert set(rows.own_parts(every, every)) <= set(PRIOR.variances)
    assert (PRIOR.coefficients > 0).all()


def made_up(coefficients: Floats, hidden: int, level: float, rng: np.random.Generator) -> list[MeasuredRun]:
    """Steps of a model of that width by a law with these coefficients, all slower by a level, measured to 1 %."""
    sizes = replace(LLAMA_8B, params_b=12 * 24 * hidden**2 / 1e9 + 2 * hidden * 32000 / 1e9, hidden=hidden, layers=24)
    sizes = replace(sizes, active_b=sizes.params_b, heads=hidden // 128, kv_heads=hidden // 128, vocab=32000)
    sizes = replace(sizes, dense_hidden=4 * hidden, dense_layers=24, full_layers=24)
    specs = [
        run(TrainingPlan(tensor=t, micro_batch=m, checkpointing=c), sizes, gpus=8, sequence=s)
        for t, m, c, s in product((1, 4), (1, 4), (Checkpointing.NONE, Checkpointing.FULL), (512, 4096))
    ]
    logs = terms_of(specs).log_step(coefficients) + level + 0.01 * rng.standard_normal(len(specs))
    return [
        MeasuredRun(f"model {hidden}", "made up", each, float(np.exp(y)), False)
        for each, y in zip(specs, logs, strict=True)
    ]


def test_learning_from_other_models_beats_the_textbook() -> None:
    missed, textbook, held = np.mean([taught(seed) for seed in range(4)], axis=0)
    assert missed < 0.03
    assert missed < 0.3 * textbook
    assert held > 0.8


def taught(seed: int) -> tuple[float, float, float]:
    """Error on a fifth model, learned from four of a made-up law, and by the textbook alone; coverage of intervals."""
    rng = np.random.default_rng(seed)
    truth = np.array(list(TERMS.values())) * np.exp(0.4 * rng.standard_normal(len(TERMS)))
    seen = [
        each
        for hidden in (1024, 2048, 4096, 6144)
        for each in made_up(truth, hidden, 0.05 * rng.standard_normal(), rng)
    ]
    new = made_up(truth, 3072, 0.0, rng)
    specs, logs = [each.spec for each in new], np.log([each.step_s or np.nan for each in new])
    belief = believe_times(specs, ProbeResults.nothing(), 0, 256, learn_time(seen))
    low, middle, high = np.quantile(belief, (0.05, 0.5, 0.95), axis=0)
    textbook = terms_of(specs).log_step(np.array(list(TERMS.values())))
    held = np.mean((low <= logs) & (logs <= high))
    return float(np.abs(middle - logs).mean()), float(np.abs(textbook - logs).mean()), float(held)
