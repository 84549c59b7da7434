"""The methods that serving is compared with: each against an oracle of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Space
from mlcd.core.history import History, Refusal
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Probe
from mlcd.planners.serve.known_models import Cell, Kind, SeenModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Figure, KnobTable, Served, knobs_of, service_of
from mlcd.planners.serve.service_level import objective_value, value
from mlcd.planners.serve.space import serving_space
from mlcd.testing.services import random_world
from mlcd.testing.serving import serve
from mlcd_bench.baselines.serve import Ernest, HeterBO, Morphling, Popular, Portfolio, Vesta
from mlcd_bench.baselines.serve.candidates import over, untried
from mlcd_bench.baselines.serve.ernest import terms
from mlcd_bench.baselines.serve.features import points, seen_values, shown
from mlcd_bench.baselines.serve.meta_model import MetaModel
from mlcd_bench.baselines.serve.portfolio import coverage
from mlcd_bench.baselines.serve.process import expected_improvement, posterior
from mlcd_bench.baselines.serve.vesta import edges

OBJECTIVES = (Objective.PER_DOLLAR, Objective.CHEAPEST, Objective.FASTEST)


# Points and seen values


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_values_at_once_are_those_of_one_configuration_after_the_other(kind, objective):
    world = random_world(kind, 3)
    job = world.job(Goal(objective), (world.latency(0.6),), min_rate=30.0)
    service = service_of(job)
    found = seen_values(world.seen, job, world.space).y
    for m, model in enumerate(world.seen.models):
        for i, configuration in enumerate(world.space.configurations):
            cell = world.seen.composed(model, configuration)
            keeps = cell is not None and cell.rate >= 30.0
            keeps = keeps and all(cell.figures[cap.figure] <= cap.at_most_s for cap in service.caps)
            assert found[m, i] == pytest.approx(
                objective_value(job, configuration.usd_per_hour, cell.rate) if keeps else 0.0
            )


def test_values_are_computed_once():
    world = random_world(Kind.DEVICE, 0)
    assert seen_values(world.recorded, world.job(), world.space) is seen_values(
        world.recorded, world.job(), world.space
    )


def test_numbers_are_logs_between_their_ends_and_words_are_as_far_apart_as_ends():
    table = KnobTable({"batch": (1, 4, 16), "kind": ("a", "b"), "one": (7,)})
    told = points(serving_space(table))
    assert [code.name for code in told.codes] == ["batch", "kind"]
    batch = told.x[:, told.columns("batch")][:, 0]
    assert sorted(set(np.round(batch, 12))) == [0.0, 0.5, 1.0]
    kinds = told.x[:, told.columns("kind")]
    assert np.linalg.norm(kinds[0] - kinds[1]) == pytest.approx(1.0)


def test_what_was_shown_counts_a_failure_as_nothing_and_bad_luck_not_at_all():
    world = random_world(Kind.INSTANCES, 1)
    a, b, c = world.space.configurations[:3]
    history = History(
        (
            Measurement(a, Outcome.OUT_OF_MEMORY, 1.0, 1.0),
            Measurement(b, Outcome.OK, 1.0, 1.0, 50.0, evidence=Served({}, {})),
            Measurement(c, Outcome.PREEMPTED, 1.0, 1.0),
        )
    )
    rows, v = shown(world.job(), world.space, history)
    assert rows == [0, 1]
    assert v.tolist() == [0.0, value(world.job(), history.measurements[1])]


def test_after_a_refusal_only_what_the_budget_allows_is_open():
    world = random_world(Kind.DEVICE, 0)
    budget = float(np.median(world.space.probe_usd))
    job = world.job(Goal(Objective.PER_DOLLAR, budget_usd=budget))
    dear = world.space.configurations[int(np.argmax(world.space.probe_usd))]
    assert untried(job, world.space, History()).all()
    open_ = untried(job, world.space, History(refusals=(Refusal(dear, "too dear"),)))
    assert (open_ == (world.space.probe_usd <= budget)).all()


def test_a_search_is_over_when_its_trials_are_used():
    world = random_world(Kind.DEVICE, 0)
    done = History(tuple(Measurement(c, Outcome.FAILED, 1.0, 0.1) for c in world.space.configurations[:3]))
    open_ = np.ones(len(world.space), dtype=bool)
    assert over(world.job(trials=4), done, open_) is None
    assert over(world.job(trials=3), done, open_) is not None
    assert over(world.job(trials=None), done, ~open_) is not None


# The Gaussian process


def test_expected_improvement_is_what_sampling_says():
    rng = np.random.default_rng(0)
    mu, sigma = np.array([0.2, 1.0, 1.5]), np.array([0.5, 0.3, 0.01])
    sampled = np.maximum(rng.normal(mu, sigma, (400_000, 3)) - 1.0, 0).mean(axis=0)
    assert expected_improvement(mu, sigma, 1.0) == pytest.approx(sampled, abs=2e-3)


def test_the_process_fits_the_trials_and_is_uncertain_far_away():
    x = np.array([[0.0], [0.2], [1.0]])
    mu, sigma = posterior(x[:2], np.array([0.5, -0.5]), x)
    assert mu[:2] == pytest.approx([0.5, -0.5], abs=0.02)
    assert sigma[2] > 5 * sigma[0]


# Popular and portfolio


def tries(strategy, world, trials):
    job = world.job(trials=trials)
    y = seen_values(world.seen, job, world.space).normalised
    return y, [world.space.index[c] for c in serve(strategy, world, job).tried]


@pytest.mark.parametrize("kind", list(Kind))
def test_popular_tries_the_best_on_average_in_order(kind):
    world = random_world(kind, 5)
    y, tried = tries(Popular(world.seen), world, 6)
    assert y.mean(axis=0)[tried] == pytest.approx(np.sort(y.mean(axis=0))[::-1][:6])


@pytest.mark.parametrize("seed", range(5))
def test_a_portfolio_of_one_is_optimal_and_of_two_within_its_bound(seed):
    world = random_world(Kind.INSTANCES, seed)
    y, tried = tries(Portfolio(world.seen), world, 2)
    everything = range(y.shape[1])
    assert coverage(y, tried[:1]).mean() == pytest.approx(max(y[:, i].mean() for i in everything))
    pairs = [coverage(y, list(pair)).mean() for pair in combinations(everything, 2)]
    assert coverage(y, tried).mean() >= (1 - 1 / np.e) * max(pairs)
    grown = [coverage(y, [tried[0], i]).mean() for i in everything]
    assert coverage(y, tried).mean() == pytest.approx(max(grown))


# HeterBO


def test_heterbo_starts_with_the_smallest_of_each_type_cheapest_first():
    world = random_world(Kind.INSTANCES, 0)
    everywhere = {tuple(knobs_of(c)): Cell(10.0, dict.fromkeys(Figure, 0.1)) for c in world.space.configurations}
    unseen = SeenModel(ModelFacts("unseen"), everywhere)
    world = replace(world, recorded=replace(world.recorded, models=(*world.seen.models, unseen)))
    tried = serve(HeterBO(world.seen), world, world.job(trials=3)).tried
    assert [dict(knobs_of(c))["instance_type"] for c in tried] == ["small", "large", "gpu"]


def test_heterbo_tries_twice_the_size_if_the_smallest_does_not_run():
    world = random_world(Kind.DEVICE, 0)
    job, cheapest = world.job(), min(world.space.configurations, key=lambda c: c.usd_per_hour)
    failed = History((Measurement(cheapest, Outcome.OUT_OF_MEMORY, 1.0, 0.1),))
    other = HeterBO(world.seen).next_step(job, world.space, failed)  # the other precision comes first
    assert isinstance(other, Probe)
    both = History((*failed.measurements, Measurement(other.configuration, Outcome.OUT_OF_MEMORY, 1.0, 0.1)))
    step = HeterBO(world.seen).next_step(job, world.space, both)
    assert isinstance(step, Probe)
    assert step.configuration.usd_per_hour >= 2 * cheapest.usd_per_hour


# Ernest


def test_ernest_finds_the_best_if_its_model_is_right():
    """Seconds for an answer are 0.1 + 0.4 / batch, whatever the type: the largest batch of the cheapest type."""
    world = random_world(Kind.INSTANCES, 0)
    cells = {}
    for configuration in world.space.configurations:
        tau = 0.1 + 0.4 / float(dict(knobs_of(configuration))["batch"])
        cells[knobs_of(configuration)] = Cell(1 / tau, dict.fromkeys(Figure, tau))
    unseen = SeenModel(ModelFacts("unseen"), cells)
    world = replace(world, recorded=replace(world.recorded, models=(*world.seen.models, unseen)))
    found = serve(Ernest(world.seen), world, world.job(trials=7)).decision.configuration
    assert dict(knobs_of(found)) == {"instance_type": "small", "batch": 64}


def test_ernests_terms_are_never_negative():
    assert (terms(random_world(Kind.DEVICE, 0).space) >= 0).all()


# Morphling and Vesta


def test_the_meta_model_begins_at_the_mean_of_its_tasks_and_follows_the_trials():
    x = np.random.default_rng(0).random((200, 2))
    tasks = np.array([np.sin(3 * x[:, 0]), np.sin(3 * x[:, 0]) + x[:, 1]])
    meta = MetaModel.trained(x, tasks)
    assert meta.expected == pytest.approx(tasks.mean(axis=0), abs=0.05)
    rows = list(range(20))
    before = np.abs(meta.expected - tasks[1]).mean()
    assert np.abs(meta.adapted(rows, tasks[1][rows]) - tasks[1]).mean() < 0.7 * before


def test_morphling_begins_with_what_was_good_for_the_seen_models():
    world = random_world(Kind.DEVICE, 6)
    job = world.job()
    step = Morphling(world.seen).next_step(job, world.space, History())
    assert isinstance(step, Probe)
    average = seen_values(world.seen, job, world.space).average
    assert average[world.space.index[step.configuration]] >= 0.8 * average.max()


@given(st.integers(0, 10_000), st.floats(0.1, 1_000))
def test_vesta_finds_the_label_of_a_model_whatever_its_scale(seed, scale):
    rng = np.random.default_rng(seed)
    v = rng.random((3, 40))
    u = edges(v, scale * v[1], np.full(3, 1 / 3))
    assert int(np.argmax(u)) == 1


def test_vesta_uses_the_labels_after_three_random_trials():
    world = random_world(Kind.DEVICE, 7)
    searched = serve(Vesta(world.seen, 3), world, world.job(trials=5))
    reasons = [line.entry.because for line in searched.lines if line.entry.kind == "reserved"]
    assert ["random" in reason for reason in reasons] == [True, True, True, False, False]


def test_a_space_with_one_word_only_still_has_points():
    told = points(Space(random_world(Kind.LANGUAGE, 0).only(0).space.choices))
    assert told.x.shape == (1, 1)
