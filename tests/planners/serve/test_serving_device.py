"""The belief about a model on partitions of a device: its parts against oracles, the whole on synthetic models."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd.core.history import History
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.beliefs import device
from mlcd.planners.serve.beliefs.cells import as_numbers, axes_of, profiled
from mlcd.planners.serve.beliefs.evidence import Ratio, cell_trials, host_limits, patterns, seen_ratio, shown_ratio
from mlcd.planners.serve.beliefs.seen_fields import log_calls, log_largest_gb, similarity
from mlcd.planners.serve.beliefs.surfaces import (
    BATCH_TIME,
    DEVICE_TIME,
    MEMORY,
    MEMORY_HELD,
    TIME,
    WORK,
    Law,
    Observations,
    conditioned,
    prior,
    surface,
)
from mlcd.planners.serve.known_models import Cell, Kind, SeenModel
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import Arrivals, Figure, Served, ServingTask, knobs_of
from mlcd.testing.services import World, random_world

CELLS = [
    (("precision", precision), ("sm_share", share), ("batch", batch))
    for precision in ("fp32", "bf16")
    for share in (25, 50, 100)
    for batch in (1, 4, 16, 64)
]
AXES = axes_of(CELLS, ("precision", "sm_share", "batch"))
GRID = as_numbers(CELLS, AXES)


def points(at, values, sd=0.01, bound=0, alone=False) -> Observations:
    count = len(at)
    return Observations(
        np.array(at, dtype=np.intp),
        np.array(values, dtype=float),
        np.full(count, sd),
        np.full(count, bound),
        np.full(count, alone),
    )


def fields_of(fields, count, rng):
    return [prior(field, GRID).sample(count, rng) for field in fields]


def samples(fields, law, work, seen, count=400, seed=0):
    rng = np.random.default_rng(seed)
    return surface(conditioned(fields_of(fields, count, rng), law, work, seen, rng), law, work, len(GRID))


# Cells


def test_words_are_categories_the_batch_is_the_batch_and_other_numbers_are_shares_of_the_largest():
    assert AXES.categories == (("bf16",), ("fp32",))
    assert AXES.amounts == ("sm_share",)
    assert GRID.log_amounts.max() == 0.0
    assert GRID.work[CELLS.index((("precision", "fp32"), ("sm_share", 25), ("batch", 16)))] == pytest.approx(
        math.log(64)
    )


def test_threads_are_an_amount_like_a_share_of_multiprocessors():
    cells = [(("precision", "fp32"), ("threads", n), ("batch", 4)) for n in (1, 2)]
    axes = axes_of(cells, ("precision", "threads", "batch"))
    assert as_numbers(cells, axes).log_amounts.ravel() == pytest.approx([-math.log(2), 0.0])


def test_a_profile_has_the_whole_device_and_is_skipped_where_its_precision_may_not_be_set():
    at = profiled([(1, 8)], AXES)
    assert (at.log_amounts == 0).all()
    assert AXES.category_of(Profile(8, (), "fp32")) == 1
    assert AXES.category_of(Profile(8, (), "int4")) is None


# Laws and samples


@pytest.mark.parametrize(("fields", "law"), [(TIME, BATCH_TIME), (TIME, DEVICE_TIME), (MEMORY, MEMORY_HELD)])
def test_the_slopes_of_a_law_are_its_derivatives(fields, law):
    rng, step = np.random.default_rng(0), 1e-6
    z = [field.mean + rng.standard_normal((5, len(GRID))) for field in fields]
    value = law.value(z, GRID.work)
    slopes = law.slopes(z, GRID.work, value)
    for i in range(len(fields)):
        moved = [each + step * (i == j) for j, each in enumerate(z)]
        assert (law.value(moved, GRID.work) - value) / step == pytest.approx(slopes[:, i], abs=1e-4)


def test_where_the_law_is_linear_samples_are_those_of_the_exact_posterior():
    field = prior(WORK, GRID)
    at, values, sd = np.array([3, 17]), np.array([-8.0, -9.5]), 0.2
    linear = Law(lambda z, work: z[0], lambda z, work, value: np.ones((len(value), 1, value.shape[1])))
    rng, everything = np.random.default_rng(1), np.arange(len(GRID))
    got = conditioned([field.sample(20_000, rng)], linear, GRID.work, points(at, values, sd), rng)[0].at(everything)
    whole, noise = field.covariance(everything), sd**2 * np.eye(2)
    gain = whole[:, at] @ np.linalg.inv(whole[np.ix_(at, at)] + noise)
    mean = field.mean + gain @ (values - field.mean[at])
    spread = np.sqrt(np.diag(whole - gain @ whole[at]))
    assert got.mean(axis=0) == pytest.approx(mean, abs=5 * float(spread.max()) / math.sqrt(20_000))
    assert got.std(axis=0) == pytest.approx(spread, rel=0.04)


def test_samples_go_through_what_was_measured():
    time = samples(TIME, BATCH_TIME, GRID.work, points([0, 9, 20], np.log([0.004, 0.03, 0.01])))
    assert np.exp(np.median(time[:, [0, 9, 20]], axis=0)) == pytest.approx([0.004, 0.03, 0.01], rel=0.03)


def test_a_bound_is_kept_and_pulls_no_further_than_it_must():
    free = samples(MEMORY, MEMORY_HELD, GRID.log_batch, points([], []))
    low = math.log(4.0)
    held = samples(MEMORY, MEMORY_HELD, GRID.log_batch, points([3], [low], bound=1))
    assert (held[:, 3] > low - 0.05).mean() > 0.97
    above = free[:, 3] > low + 0.05  # beyond the bound's own noise
    assert held[above, 3] == pytest.approx(free[above, 3], abs=1e-6)


def test_a_profile_tells_of_the_device_and_leaves_the_host_as_it_was():
    rng, everything = np.random.default_rng(0), np.arange(len(GRID))
    start = fields_of(TIME, 200, rng)
    after = conditioned(start, BATCH_TIME, GRID.work, points([3], [-5.0], alone=True), rng)
    assert (after[0].at(everything) == start[0].at(everything)).all()
    assert surface(after, DEVICE_TIME, GRID.work, len(GRID))[:, 3].mean() == pytest.approx(-5.0, abs=0.1)


# Likeness and sizes


def facts(name: str, calls: int = 10, memory_mb: float = 8.0, **shares: float) -> ModelFacts:
    operators = tuple(Operator(each, calls, share, memory_mb) for each, share in shares.items())
    return ModelFacts(name, profiles=(Profile(8, operators),) if shares else ())


def test_a_twin_gets_nearly_all_the_weight_and_a_stranger_none():
    seen = [facts("cnn", conv=0.9, relu=0.1), facts("lstm", lstm=1.0)]
    apart = np.array([[1.0, 2.0], [-1.0, -2.0]])
    weights, novelty = similarity(facts("new", conv=0.9, relu=0.1), seen).krige(apart)
    assert weights[0] > 0.8
    assert novelty < 0.35
    assert abs(weights[1]) < 0.05
    assert similarity(facts("odd", sort=1.0), seen).krige(apart)[1] > 0.95
    assert similarity(ModelFacts("unknown"), seen).krige(apart)[1] == 1.0


def test_likeness_counts_for_less_where_twins_behave_differently():
    seen = [facts(f"{kind}{i}", **{kind: 1.0}) for kind in ("conv", "matmul", "lstm", "sort") for i in range(2)]
    new, rng = similarity(facts("new", conv=1.0), seen), np.random.default_rng(0)
    alike = np.repeat(rng.standard_normal((4, 6)), 2, axis=0)
    assert new.krige(alike)[1] < 0.2
    assert new.krige(rng.standard_normal((8, 6)))[1] > 0.4


def test_sizes_are_read_from_a_profile_and_missing_without_one():
    assert log_calls(facts("a", calls=20, conv=1.0)) == pytest.approx(math.log(20))
    assert log_largest_gb(facts("a", calls=2, memory_mb=16.0, conv=1.0)) == pytest.approx(math.log(1 / 1_024))
    assert log_calls(ModelFacts("a")) is log_largest_gb(ModelFacts("a")) is None


# What runs


def test_one_failure_makes_its_neighbours_doubtful_even_if_nobody_ever_failed():
    rng = np.random.default_rng(0)
    found = patterns(np.ones((5, len(GRID)), bool), np.full(5, 0.2), ModelFacts("a"), frozenset(), GRID)
    before, after = found.sample(500, [], [], rng), found.sample(500, [], [3], rng)
    same = np.flatnonzero(GRID.category == GRID.category[3])
    other = np.flatnonzero(GRID.category != GRID.category[3])
    assert before.mean() > 0.93
    assert after[:, same].mean() < 0.7
    assert after[:, other].mean() > 0.9
    assert not after[:, 3].any()


def test_a_precision_that_could_not_be_profiled_is_doubted():
    profiles = (Profile(4, (Operator("conv", 1, 1.0),), "fp32"), Profile(64, (Operator("conv", 1, 8.0),), "fp32"))
    seen, both = np.ones((5, len(GRID)), bool), frozenset({0, 1})
    found = patterns(seen, np.full(5, 0.2), ModelFacts("a", profiles=profiles), both, GRID)
    chance = found.weights @ found.runs
    assert chance[(GRID.category == 0) & np.isclose(GRID.log_batch, math.log(64))].max() < 0.9
    assert chance[GRID.category == 1].min() > 0.98


# Evidence


WORLD = random_world(Kind.DEVICE, 0)
NO_RATIO = Ratio()


def trial(world: World, at: int, outcome: Outcome = Outcome.OK, rate: float | None = None) -> Measurement:
    configuration = world.space.configurations[at]
    cell = world.recorded.composed(world.unseen, configuration)
    if outcome is not Outcome.OK or cell is None:
        return Measurement(configuration, outcome if outcome is not Outcome.OK else Outcome.FAILED, 60.0, 0.0)
    served = Served(cell.figures, cell.figures, peak_gb=cell.peak_gb)
    return Measurement(configuration, Outcome.OK, 60.0, 0.0, rate or cell.rate, evidence=served)


def ran(world: World, count: int, seed: int = 0) -> list[int]:
    """Configurations of different cells that the unseen model runs on."""
    found: dict[object, int] = {}
    for at in np.random.default_rng(seed).permutation(len(world.space)):
        configuration = world.space.configurations[at]
        if world.recorded.composed(world.unseen, configuration) is not None:
            found.setdefault(world.recorded.cell_of(configuration), int(at))
    return list(found.values())[:count]


def test_a_trial_that_waited_for_its_host_tells_of_the_device_by_its_latency():
    at = next(
        i
        for i in ran(WORLD, 30)
        if WORLD.recorded.composed(WORLD.unseen, c := WORLD.space.configurations[i]).rate
        == WORLD.recorded.host_rate(WORLD.unseen.facts.inputs, c)
    )
    told = cell_trials(WORLD.seen, ServingTask(WORLD.unseen.facts), History((trial(WORLD, at),)), NO_RATIO)[0]
    cell = WORLD.unseen.cells[WORLD.seen.cell_of(WORLD.space.configurations[at])]
    assert math.exp(told.time) == pytest.approx(cell.figures[Figure.P50])
    assert told.time_bound == 0


def test_an_open_trial_that_answered_all_that_was_sent_is_a_bound():
    measured = trial(WORLD, ran(WORLD, 1)[0], rate=1.0)
    service = ServingTask(replace(WORLD.unseen.facts, inputs="image224"), min_rate=1.0, arrivals=Arrivals.OPEN)
    told = cell_trials(WORLD.seen, service, History((measured,)), NO_RATIO)[0]
    assert told.time_bound == -1


def test_out_of_memory_bounds_memory_and_another_failure_says_that_the_cell_does_not_run():
    history = History((trial(WORLD, 0, Outcome.OUT_OF_MEMORY), trial(WORLD, 0, Outcome.FAILED)))
    short, broken = cell_trials(WORLD.seen, ServingTask(WORLD.unseen.facts), history, NO_RATIO)
    assert (short.memory, short.memory_bound, short.runs) == (math.log(1), 1, True)
    assert (broken.time, broken.memory, broken.runs) == (None, None, False)


def test_bad_luck_tells_nothing():
    history = History((trial(WORLD, 0, Outcome.PREEMPTED),))
    assert cell_trials(WORLD.seen, ServingTask(WORLD.unseen.facts), history, NO_RATIO) == ()


def test_what_a_host_prepares_is_read_between_its_table_or_learnt_from_a_trial_that_waited():
    known = host_limits(
        WORLD.seen, ServingTask(ModelFacts("a", inputs="image224")), History(), np.array([1.0, 2.0, 1.41]), NO_RATIO
    )
    assert known[:2] == pytest.approx([400.0, 800.0])
    assert 400 < known[2] < 800
    unknown = ServingTask(ModelFacts("a", inputs="audio"))
    assert np.isinf(host_limits(WORLD.seen, unknown, History(), np.ones(3), NO_RATIO)).all()
    waited = replace(trial(WORLD, ran(WORLD, 1)[0]), samples_per_s=0.5)
    cores = dict(knobs_of(waited.configuration))["cpu_cores"]
    learnt = host_limits(WORLD.seen, unknown, History((waited,)), np.array([1.0, 2.0]), NO_RATIO)
    assert learnt == pytest.approx([0.5 / cores, 1.0 / cores])


def test_a_tail_that_is_longer_than_a_batch_is_learnt_from_seen_models_and_then_from_trials():
    models = tuple(
        replace(
            m,
            cells={k: replace(c, figures={Figure.P95: f * 1 / c.rate * dict(k)["batch"]}) for k, c in m.cells.items()},
        )
        for m, f in zip(WORLD.seen.models, (1.5, 2.0, 2.5, 3.0), strict=True)
    )
    before = seen_ratio(replace(WORLD.seen, models=models), Figure.P95)
    assert math.exp(before.mean) == pytest.approx(2.18, rel=0.01)
    slow = replace(WORLD.unseen.facts, inputs="")  # nothing to wait for
    at = ran(WORLD, 1)[0]
    measured = trial(WORLD, at)
    assert isinstance(measured.evidence, Served)
    figures = {Figure.P95: 3 * measured.evidence.figures[Figure.P95]}
    measured = replace(measured, evidence=Served(figures, figures))
    measured = replace(
        measured, samples_per_s=dict(knobs_of(measured.configuration))["batch"] / figures[Figure.P95] * 3
    )
    told = cell_trials(WORLD.seen, ServingTask(slow), History((measured,)), NO_RATIO)
    after = shown_ratio(before, told, Figure.P95)
    assert math.exp(after.mean) == pytest.approx(3.0, rel=0.02)
    assert after.sd < 0.1


# The whole


def draw(world: World, history: History | None = None, count: int = 200, seed: int = 0, knowledge=None):
    history = history or History()
    known = knowledge if knowledge is not None else world.seen
    return device.draw(known, world.job(), world.space, history, count, np.random.default_rng(seed))


def test_the_same_history_and_the_same_numbers_give_the_same_samples():
    history = History(tuple(trial(WORLD, at) for at in ran(WORLD, 3)))
    first, again = draw(WORLD, history), draw(WORLD, history)
    assert (first.rate == again.rate).all()
    assert (first.figures[Figure.P95] == again.figures[Figure.P95]).all()


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_it_works_from_however_few_models_were_seen(count):
    knowledge = replace(WORLD.seen, models=WORLD.seen.models[:count])
    history = History(tuple(trial(WORLD, at) for at in ran(WORLD, 2)))
    drawn = draw(WORLD, history, knowledge=knowledge)
    assert np.isfinite(drawn.rate).all()
    assert (drawn.rate >= 0).all()


def made(rng: np.random.Generator, count: int = 9) -> World:
    """A world as the belief thinks it is: every model's fields are samples of the prior, about a level of its own."""
    spreads = (field.spread.scaled(0.5, 0.5) for field in (*TIME, *MEMORY))
    fields = [
        prior(field, GRID, spread).sample(count, rng).at(np.arange(len(GRID)))
        for field, spread in zip((*TIME, *MEMORY), spreads, strict=True)
    ]
    time = BATCH_TIME.value(fields[:3], GRID.work)
    held = MEMORY_HELD.value(fields[3:], GRID.log_batch)
    models = []
    for j in range(count):
        latency, gb = np.exp(time[j]), np.exp(held[j])
        name = "unseen" if j == count - 1 else f"seen{j}"
        measured = {
            cell: Cell(
                dict(cell)["batch"] / latency[i],
                dict.fromkeys((Figure.P50, Figure.P95), float(latency[i])),
                float(gb[i]),
            )
            for i, cell in enumerate(CELLS)
        }
        models.append(SeenModel(ModelFacts(name), measured))
    return World(replace(WORLD.recorded, models=tuple(models)), WORLD.space)


@pytest.mark.parametrize("trials", [0, 4])
def test_intervals_hold_as_often_as_they_say(trials):
    inside = []
    for seed in range(25):
        world = made(np.random.default_rng(seed))
        tried = ran(world, trials, seed)
        history = History(tuple(trial(world, at) for at in tried))
        drawn = draw(world, history, seed=seed).figures[Figure.P95]
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        known = {world.seen.cell_of(world.space.configurations[at]) for at in tried}
        for at, configuration in enumerate(world.space.configurations):
            cell = world.seen.cell_of(configuration)
            if cell not in known:
                inside.append(low[at] <= world.unseen.cells[cell].figures[Figure.P95] <= high[at])
    assert np.mean(inside) > 0.85


def test_trials_narrow_the_belief_about_what_was_not_tried():
    tried = ran(WORLD, 5)
    left = [i for i in ran(WORLD, 30) if i not in tried]
    before, after = (
        np.log(draw(WORLD, history).figures[Figure.P95][:, left]).std(axis=0).mean()
        for history in (History(), History(tuple(trial(WORLD, at) for at in tried)))
    )
    assert after < 0.7 * before


def test_a_batch_and_a_share_that_nobody_measured_are_read_between_those_that_were():
    thin = replace(
        WORLD.recorded,
        models=tuple(
            replace(m, cells={k: c for k, c in m.cells.items() if dict(k)["batch"] != 16})
            for m in WORLD.recorded.models
        ),
    )
    world = replace(WORLD, recorded=thin)
    history = History(tuple(trial(world, at) for at in ran(world, 6)))
    drawn = np.median(draw(world, history).figures[Figure.P95], axis=0)
    off = [
        abs(math.log(drawn[at] / WORLD.unseen.cells[cell].figures[Figure.P95]))
        for at, c in enumerate(WORLD.space.configurations)
        if dict(cell := WORLD.seen.cell_of(c))["batch"] == 16 and cell in WORLD.unseen.cells
    ]
    assert np.median(off) < 0.3


@SLOW
@given(
    seed=st.integers(0, 50),
    outcomes=st.lists(st.sampled_from([Outcome.OK, Outcome.OUT_OF_MEMORY, Outcome.FAILED]), max_size=6),
    profiled_=st.booleans(),
    weighed=st.booleans(),
    inputs=st.sampled_from(["image224", "", "unheard of"]),
)
def test_whatever_trials_come_to_and_whatever_is_known_samples_are_rates_and_latencies(
    seed, outcomes, profiled_, weighed, inputs
):
    world = random_world(Kind.DEVICE, seed)
    told = world.unseen.facts
    told = replace(
        told,
        inputs=inputs,
        profiles=told.profiles if profiled_ else (),
        weights_mb=told.weights_mb if weighed else None,
    )
    job = world.job()
    assert isinstance(job.ask, ServingTask)
    job = replace(job, ask=replace(job.ask, model=told))
    picks = np.random.default_rng(seed).integers(len(world.space), size=len(outcomes))
    history = History(tuple(trial(world, int(at), outcome) for at, outcome in zip(picks, outcomes, strict=True)))
    drawn = device.draw(world.seen, job, world.space, history, 32, np.random.default_rng(seed))
    assert drawn.rate.shape == (32, len(world.space))
    assert np.isfinite(drawn.rate).all()
    assert (drawn.rate >= 0).all()
    assert (drawn.figures[Figure.P95] > 0).all()
