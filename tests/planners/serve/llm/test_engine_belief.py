"""The belief about deployments: it recovers the structure of synthetic data, and agrees with its trials."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mlcd.catalog.gpus import gpu_named
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.grey_box import GreyBox, sample_values
from mlcd.planners.serve.known_models import Anatomy, ByIdentity, Kind, Knowledge
from mlcd.planners.serve.llm.belief import TYPICAL_ARCHITECTURE, draw, drawn_times, table_of
from mlcd.planners.serve.llm.deployment import Deployment
from mlcd.planners.serve.llm.effects import Rows
from mlcd.planners.serve.llm.learning import LoadTest, learn
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.llm.prior import Prior, read_prior, shared_effects, shipped_prior, written_prior
from mlcd.planners.serve.llm.roofline import TPOT_TERMS, TTFT_TERMS, LoadPoint, terms_of
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Level, Served, ServerSettings, ServingTask

SMALL = Architecture(8.03, 8.03, 32, 4096, 32, 8, 128, 128256, 131072, 14336, 32, full_layers=32)
LARGE = Architecture(70.6, 70.6, 80, 8192, 64, 8, 128, 128256, 131072, 28672, 80, full_layers=80)
ENGINES = {"fast": 0.0, "slow": 0.4}
PROMPTS = Prompts(1024, 256)
NOTHING_SEEN = Knowledge(Kind.ENGINES, Anatomy(()), ())


@cache
def made_tests() -> tuple[LoadTest, ...]:
    """Four models in a world of the law, where one engine takes 1.5 times as long as the other."""
    rng = np.random.default_rng(0)
    points, names, levels = [], [], []
    middle = replace(SMALL, layers=48, params_b=12, active_b=12)
    for k, sizes in enumerate((SMALL, LARGE, middle, replace(LARGE, layers=60))):
        for engine, level in ENGINES.items():
            for tp in (2, 4, 8):
                for requests in (1, 4, 16, 64):
                    at = Deployment(gpu="H100", gpus=tp, tp=tp, engine=engine)
                    points.append(LoadPoint(sizes, at, gpu_named("H100"), PROMPTS, requests))
                    names.append(f"model {k}")
                    levels.append(level + 0.1 * k)
    terms = terms_of(points)
    tpot = terms.log_tpot(np.array(list(TPOT_TERMS.values()))) + levels
    ttft = terms.log_ttft(np.array(list(TTFT_TERMS.values())), np.exp(tpot)) + levels
    tpot, ttft = (np.exp(each + 0.02 * rng.standard_normal(len(points))) for each in (tpot, ttft))
    return tuple(map(LoadTest, names, points, ttft.tolist(), tpot.tolist()))


@cache
def made_prior() -> Prior:
    return learn(made_tests())


def space(*knobs: dict[str, str | int]) -> Space:
    settings = [ServerSettings(tuple(each.items())) for each in knobs]
    gpus = [int(each.get("gpus", 1)) for each in knobs]
    offers = [Offer(f"{n} x H100", 7.0 * n, vcpus=1, memory_gb=1) for n in gpus]
    return Space(tuple(Choice(offer, settings=(setting,)) for offer, setting in zip(offers, settings, strict=True)))


TENSOR = space(*({"gpu": "H100", "gpus": n, "tp": n, "precision": p} for n in (1, 2, 4, 8) for p in ("bf16", "fp8")))


def job(*caps: Cap, sweep: tuple[int, ...] = (1, 4, 16, 64), sizes: Architecture | None = SMALL) -> Job:
    language = LanguageModel(Engine("vllm"), sizes, PROMPTS, sweep)
    task = ServingTask(ModelFacts("small"), caps, counted=Counted.TOKENS, language=language)
    return Job("small", 0.0, Goal(Objective.PER_DOLLAR), ask=task, search=Search("grey-box", trials=6))


def sweep_of(i: int, tpot_s: float = 0.02, ttft_s: float = 0.3) -> Measurement:
    """A trial with times of 20 and 300 ms at one request at once, and half as much again for each fourfold load."""
    levels = []
    for k, requests in enumerate((1, 4, 16, 64)):
        slower = 1.5**k
        figures = {Figure.TPOT_P50: tpot_s * slower, Figure.TTFT_P50: ttft_s * slower}
        rate = requests * 256 / (ttft_s * slower + 255 * tpot_s * slower)
        levels.append(Level(requests, rate, 0.02, figures, figures))
    best = levels[-1]
    return Measurement(
        TENSOR.configurations[i], Outcome.OK, 60.0, 0.1, best.rate, 0.02,
        evidence=Served(best.figures, best.high, levels=tuple(levels)),
    )  # fmt: skip


def test_learning_finds_the_slow_engine():
    prior = made_prior().tpot
    effect = dict(zip(prior.names, prior.mean, strict=True))
    shift = effect["engine slow"] - effect["engine fast"]
    stacks = effect["stack slow H100 bf16"] - effect["stack fast H100 bf16"]
    slow, fast = ([effect[f"parallelism {engine} {tp} 1 1 agg"] for tp in (2, 4, 8)] for engine in ("slow", "fast"))
    splits = np.mean(slow) - np.mean(fast)
    assert shift + stacks + splits == pytest.approx(0.4, abs=0.03)


def test_a_left_out_model_is_predicted_from_the_others():
    tests = made_tests()
    prior = learn([test for test in tests if test.model != "model 1"])
    left_out = [test for test in tests if test.model == "model 1"]
    rows, terms = Rows([test.point for test in left_out], [""] * len(left_out)), terms_of([t.point for t in left_out])
    effects = shared_effects(prior.tpot, terms, rows, prior.systems)
    told = terms.log_tpot(prior.tpot.coefficients) + effects.middle
    errors = told - np.log([test.tpot_s for test in left_out])
    assert np.abs(errors).max() < 0.25
    assert np.abs(errors - errors.mean()).max() < 0.1  # but for the model's own level


def test_a_prior_is_the_same_after_it_was_written():
    again = read_prior(written_prior(made_prior(), "made"))
    assert again.systems == made_prior().systems
    assert again.tpot.names == made_prior().tpot.names
    np.testing.assert_allclose(again.ttft.covariance, made_prior().ttft.covariance, atol=1e-6)
    np.testing.assert_allclose(again.tpot.coefficients, made_prior().tpot.coefficients, rtol=1e-3)


def test_the_shipped_prior_predicts_a_known_model():
    """Llama 8B in bf16 reads 15 GB a token: at least 4.5 ms on an H100; engines take 6 to 10 ms."""
    table = table_of(ByIdentity(NOTHING_SEEN, TENSOR), job().ask.language)  # type: ignore[union-attr]
    samples = drawn_times(table, table.tpot, np.array([], int), [], 400, np.random.default_rng(0))
    one_gpu_one_request = np.median(samples[:, table.at[0, 1]])
    assert 0.0045 < one_gpu_one_request < 0.012
    assert shipped_prior().systems  # and it has seen GPUs


def test_draws_agree_with_trials_where_they_were_made_and_come_nearer_elsewhere():
    table = table_of(ByIdentity(NOTHING_SEEN, TENSOR), job().ask.language)  # type: ignore[union-attr]
    rows = np.array([table.at[0, 1], table.at[0, 16]])
    seconds = [0.02, 0.05]
    before = np.log(drawn_times(table, table.tpot, np.array([], int), [], 400, np.random.default_rng(0)))
    after = np.log(drawn_times(table, table.tpot, rows, seconds, 400, np.random.default_rng(0)))
    np.testing.assert_allclose(np.exp(after[:, rows]), np.tile(seconds, (400, 1)))
    between = table.at[0, 4]
    assert after[:, between].std() < before[:, between].std() / 2
    assert np.log(0.02) < np.median(after[:, between]) < np.log(0.05)


def test_a_residual_carries_over_to_twice_the_concurrency_of_its_deployment():
    table = table_of(ByIdentity(NOTHING_SEEN, TENSOR), job(sweep=(4, 8)).ask.language)  # type: ignore[union-attr]
    times, at = table.ttft, table.at[0, 4]
    middle = times.roofline + times.shared.middle
    shown = float(np.exp(middle[at] + 1.0))
    samples = np.log(drawn_times(table, times, np.array([at]), [shown], 2_000, np.random.default_rng(0)))
    moved = np.median(samples, axis=0) - middle
    assert moved[table.at[0, 8]] > 0.85
    assert all(moved[table.at[i, 8]] < moved[table.at[0, 8]] - 0.1 for i in range(1, len(TENSOR)))


def test_moved_samples_have_the_mean_of_the_closed_form():
    """Matheron's rule against the Gaussian formula, without Student's tails on the trial itself."""
    table = table_of(ByIdentity(NOTHING_SEEN, TENSOR), job().ask.language)  # type: ignore[union-attr]
    times, rows = table.ttft, np.array([table.at[2, 4]])
    middle, spread = times.roofline + times.shared.middle, times.shared.spread
    every = np.arange(len(middle))
    whole = spread @ spread.T + table.rows.own_covariance(times.prior.variances, every, every)
    whole += times.prior.noise * table.rows.residuals.covariance(every, every)
    shown = float(np.exp(middle[rows[0]] + 0.1))  # near enough to be trusted in full
    exact = middle + whole[:, rows[0]] / whole[rows[0], rows[0]] * 0.1
    samples = np.log(drawn_times(table, times, rows, [shown], 6_000, np.random.default_rng(1)))
    others = np.delete(every, rows)
    np.testing.assert_allclose(np.median(samples, axis=0)[others], exact[others], atol=0.06)


def test_a_configuration_is_worth_its_best_level_that_keeps_the_caps():
    history = History((sweep_of(0),))
    free = draw(NOTHING_SEEN, job(), TENSOR, history, 32, np.random.default_rng(0))
    tight = draw(NOTHING_SEEN, job(Cap(Figure.TPOT_P50, 0.035)), TENSOR, history, 32, np.random.default_rng(0))
    levels = history.measurements[0].evidence.levels  # type: ignore[union-attr]
    assert free.rate[:, 0] == pytest.approx(levels[-1].rate)
    assert tight.rate[:, 0] == pytest.approx(levels[1].rate)  # 30 ms with 4 requests at once, 45 ms with 16
    assert (tight.figures[Figure.TPOT_P50][:, 0] <= 0.035).all()


def test_what_failed_is_not_expected_to_run_and_bad_luck_says_nothing():
    failed = Measurement(TENSOR.configurations[0], Outcome.FAILED, 60.0, 0.1)
    unlucky = Measurement(TENSOR.configurations[1], Outcome.PREEMPTED, 60.0, 0.1)
    rate = draw(NOTHING_SEEN, job(), TENSOR, History((failed, unlucky)), 16, np.random.default_rng(0)).rate
    assert (rate[:, 0] == 0).all()
    assert (rate[:, 1] > 0).all()


def test_out_of_memory_excludes_what_needs_more_of_a_gpu():
    with_fp8_on_one_gpu = Measurement(TENSOR.configurations[1], Outcome.OUT_OF_MEMORY, 60.0, 0.1)
    rate = draw(NOTHING_SEEN, job(), TENSOR, History((with_fp8_on_one_gpu,)), 16, np.random.default_rng(0)).rate
    assert (rate[:, [0, 1]] == 0).all()  # with bf16 it needs twice as much
    assert (rate[:, -1] > 0).any()


def test_an_unseen_processor_has_a_wide_prior():
    cpu = space(*({"threads": n, "precision": "bf16", "eager": e} for n in (1, 2) for e in ("eager", "compiled")))
    draws = draw(NOTHING_SEEN, job(), cpu, History(), 200, np.random.default_rng(0))
    on_gpu = draw(NOTHING_SEEN, job(), TENSOR, History(), 200, np.random.default_rng(0))
    assert draws.outside == 1.0
    assert on_gpu.outside == 0.0
    assert np.log(draws.rate).std(axis=0).min() > 1.5 * np.log(on_gpu.rate).std(axis=0).max()


def test_a_knob_outside_the_roofline_is_learned_from_trials():
    made = space(*({"gpu": "H100", "threads_per_worker": n, "graph": g} for n in (1, 2, 4) for g in ("on", "off")))
    table = table_of(ByIdentity(NOTHING_SEEN, made), job().ask.language)  # type: ignore[union-attr]
    rows = np.array([table.at[i, 16] for i in (0, 1, 2, 3)])
    seconds = [0.010, 0.020, 0.010, 0.020]  # graphs off take twice as long
    after = drawn_times(table, table.tpot, rows, seconds, 400, np.random.default_rng(0))
    on, off = (float(np.median(after[:, table.at[i, 16]])) for i in (4, 5))
    assert off / on > 1.4


def test_a_trial_with_two_threads_tells_of_others_with_two():
    cores = space(*({"threads": n, "sequences": m} for n in (1, 2) for m in (4, 32)))
    table = table_of(ByIdentity(NOTHING_SEEN, cores), job(sweep=(4,)).ask.language)  # type: ignore[union-attr]
    middle = table.tpot.roofline + table.tpot.shared.middle
    one, two = table.at[0, 4], table.at[2, 4]
    slow = np.exp(middle[[one, two]] + [0.0, 1.5]).tolist()  # two threads take far longer than the law says
    samples = np.log(drawn_times(table, table.tpot, np.array([one, two]), slow, 2_000, np.random.default_rng(0)))
    moved = np.median(samples, axis=0) - middle
    assert moved[table.at[3, 4]] > moved[table.at[1, 4]] + 0.5


def test_on_an_unseen_processor_a_fast_first_level_does_not_shorten_the_wait_for_admission():
    """Both take four requests at once. The first starts five times as fast as the law says, and waits as it says."""
    knobs = [{"threads": 1, "sequences": 4, "graph": graph} for graph in ("on", "off")]
    tiny = replace(SMALL, params_b=0.01, active_b=0.01, layers=2, hidden=128, heads=4, kv_heads=2, vocab=1_024)
    language = job(sweep=(1, 32), sizes=tiny).ask.language  # type: ignore[union-attr]
    table = table_of(ByIdentity(NOTHING_SEEN, space(*knobs)), language)
    first, alone, waiting = [table.at[0, 1], table.at[0, 32]], table.at[1, 1], table.at[1, 32]
    law = np.exp(table.ttft.roofline)
    loads, shown = np.array(first), [law[first[0]] / 5, law[first[1]]]
    tpot = drawn_times(
        table, table.tpot, loads, np.exp(table.tpot.roofline[first]).tolist(), 2_000, np.random.default_rng(0)
    )
    ttft = np.median(drawn_times(table, table.ttft_with(tpot), loads, shown, 2_000, np.random.default_rng(1)), axis=0)
    assert ttft[alone] < law[alone] / 2
    assert ttft[waiting] > law[waiting] / 1.5


def test_no_rate_exceeds_what_admitted_requests_can_produce():
    """Four have a place: whatever is believed of TTFT, 64 at once write four tokens in a TPOT."""
    few = space(*({"threads": 1, "sequences": 4, "graph": graph} for graph in ("on", "off")))
    draws = draw(NOTHING_SEEN, job(sweep=(64,)), few, History(), 400, np.random.default_rng(0))
    most = 4 / draws.figures[Figure.TPOT_P50] * 256 / 255
    assert (draws.rate <= most * (1 + 1e-9)).all()


@pytest.mark.parametrize("knob", ["sequences", "kv_cache_gb"])
def test_a_knob_inside_the_roofline_has_a_small_additional_effect(knob: str):
    def apart(name: str) -> float:
        """How far two settings of a knob may differ, where it binds nothing."""
        two = space(*({"threads": 1, name: value} for value in (64, 128)))
        table = table_of(ByIdentity(NOTHING_SEEN, two), job(sweep=(4,)).ask.language)  # type: ignore[union-attr]
        samples = np.log(drawn_times(table, table.tpot, np.array([], int), [], 2_000, np.random.default_rng(0)))
        return float((samples[:, 0] - samples[:, 1]).std())

    assert apart(knob) < apart("queue_length") / 1.5


def test_quantiles_are_as_far_from_medians_as_trials_differ_in_that():
    """A cap on p95 is kept less surely where p95 was 1.1 times the median in one trial, and 2.5 times in another."""

    def spread(*ratios: float) -> float:
        trials = []
        for i, ratio in enumerate(ratios):
            trial = sweep_of(i)
            assert isinstance(trial.evidence, Served)
            levels = [replace(e, figures={**e.figures, Figure.TPOT_P95: ratio * e.figures[Figure.TPOT_P50]})
                      for e in trial.evidence.levels]  # fmt: skip
            trials.append(replace(trial, evidence=replace(trial.evidence, levels=tuple(levels))))
        figures = draw(NOTHING_SEEN, job(), TENSOR, History(tuple(trials)), 400, np.random.default_rng(0)).figures
        return float(np.log(figures[Figure.TPOT_P95] / figures[Figure.TPOT_P50])[:, -1].std())

    assert spread(1.1, 1.1) < 0.15
    assert spread(1.1, 2.5) > 0.25


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_a_good_deployment_of_a_made_world(seed: int):
    """Each sample of the belief is a world; the search is played in it, and four trials of eight are enough."""
    caps = (Cap(Figure.TPOT_P50, 0.03), Cap(Figure.TTFT_P50, 1.0))
    asked, history = job(*caps, sweep=(16,)), History()
    world = draw(NOTHING_SEEN, asked, TENSOR, history, 1, np.random.default_rng(seed))
    worths = sample_values(asked, TENSOR, world)[0]
    for _ in range(4):
        step = GreyBox(NOTHING_SEEN, seed).next_step(asked, TENSOR, history)
        if isinstance(step, Finish):
            break
        at = TENSOR.index[step.configuration]
        figures = {figure: float(each[0, at]) for figure, each in world.figures.items()}
        level = Level(16, float(world.rate[0, at]), 0.0, figures, figures)
        evidence = Served(figures, figures, levels=(level,))
        trial = Measurement(step.configuration, Outcome.OK, 60.0, 0.1, level.rate, evidence=evidence)
        history = History((*history.measurements, trial))
    assert max(worths[TENSOR.index[m.configuration]] for m in history.measurements) >= 0.8 * worths.max()


def test_a_model_of_unknown_sizes_gets_a_typical_architecture():
    draws = draw(NOTHING_SEEN, job(sizes=None), TENSOR, History(), 4, np.random.default_rng(0))
    usual = draw(NOTHING_SEEN, job(sizes=TYPICAL_ARCHITECTURE), TENSOR, History(), 4, np.random.default_rng(0))
    np.testing.assert_allclose(draws.rate, usual.rate)


def test_a_recording_without_seen_models_does_not_use_the_shipped_prior():
    emptied = replace(NOTHING_SEEN, source="some recording")
    draws = draw(emptied, job(), TENSOR, History(), 200, np.random.default_rng(0))
    known = draw(NOTHING_SEEN, job(), TENSOR, History(), 200, np.random.default_rng(0))
    assert draws.outside == 1.0
    assert np.log(draws.rate[:, -1]).std() > 2 * np.log(known.rate[:, -1]).std()
