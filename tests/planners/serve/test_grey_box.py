"""The grey-box search: its contract, its rule against oracles, and its expected number of trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Strategy
from mlcd.planners.serve.beliefs import device
from mlcd.planners.serve.beliefs.draws import Draws
from mlcd.planners.serve.expected_trials import expected_trials
from mlcd.planners.serve.grey_box import BELIEFS, GreyBox, chance_to_mislead, expected_gains, sample_values
from mlcd.planners.serve.known_models import Kind, Knowledge
from mlcd.planners.serve.nouns import Cap, Figure, Served, ServingTask, knobs_of
from mlcd.planners.serve.service_level import objective_value
from mlcd.testing.services import World, random_world
from mlcd.testing.serving import ServingStrategyContract, serve

OBJECTIVES = (Objective.PER_DOLLAR, Objective.CHEAPEST, Objective.FASTEST)


class TestGreyBox(ServingStrategyContract):
    def strategy(self, knowledge: Knowledge, seed: int) -> Strategy:
        return GreyBox(knowledge, seed)


def values(world: World, objective: Objective, cap_s: float = np.inf) -> np.ndarray:
    """What every configuration is worth for the unseen model."""
    job, found = world.job(Goal(objective)), []
    for configuration in world.space.configurations:
        cell = world.recorded.composed(world.unseen, configuration)
        kept = cell is not None and cell.figures[Figure.P95] <= cap_s
        found.append(objective_value(job, configuration.usd_per_hour, cell.rate) if kept else 0.0)
    return np.array(found)


def with_a_twin(world: World) -> World:
    """The same, but a model like the unseen one was seen many times over."""
    twins = tuple(replace(world.unseen, facts=replace(world.unseen.facts, name=f"twin{i}")) for i in range(6))
    return replace(world, recorded=replace(world.recorded, models=(*twins, world.unseen)))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(3))
def test_the_first_trial_is_the_best_if_a_twin_was_seen(objective, seed):
    world = with_a_twin(random_world(Kind.DEVICE, seed))
    cap = world.latency(0.5)
    step = GreyBox(world.seen).next_step(world.job(Goal(objective), (cap,)), world.space, History())
    found = values(world, objective, cap.at_most_s)
    assert found[world.space.index[step.configuration]] >= 0.97 * found.max()


@pytest.mark.parametrize("quantile", [0.2, 0.5, 1.0])
def test_six_trials_come_close_to_the_best_of_a_model_that_nobody_has_seen(quantile):
    reached = []
    for seed in range(8):
        world = random_world(Kind.DEVICE, seed)
        cap = world.latency(quantile)
        found = serve(GreyBox(world.seen), world, world.job(caps=(cap,), trials=6)).decision.configuration
        all_ = values(world, Objective.PER_DOLLAR, cap.at_most_s)
        reached.append(all_[world.space.index[found]] / all_.max() if found is not None else 0.0)
    assert np.mean(reached) > 0.9


def with_wrong_knowledge(world: World, seed: int) -> World:
    """Every seen result stands at a configuration that it was not measured at."""
    rng, models = np.random.default_rng(seed), [world.unseen]
    for model in world.seen.models:
        cells = list(model.cells.values())
        order = rng.permutation(len(cells))
        models.append(replace(model, cells={key: cells[i] for key, i in zip(model.cells, order, strict=True)}))
    return replace(world, recorded=replace(world.recorded, models=tuple(models)))


@pytest.mark.parametrize("kind", [Kind.DEVICE, Kind.INSTANCES])
def test_knowledge_that_is_wrong_hardly_misleads_it(kind):
    """Trials tell how far to trust it: by the sixth, the search does nearly as well as if nothing were known."""
    reached: dict[str, list[float]] = {"wrong": [], "none": []}
    for seed in range(8):
        world = with_wrong_knowledge(random_world(kind, seed), seed)
        cap = world.latency(0.4)
        all_ = values(world, Objective.PER_DOLLAR, cap.at_most_s)
        for name, seen in (("wrong", world.seen), ("none", replace(world.seen, models=()))):
            found = serve(GreyBox(seen), world, world.job(caps=(cap,), trials=6)).decision.configuration
            reached[name].append(all_[world.space.index[found]] / all_.max() if found is not None else 0.0)
    assert np.mean(reached["wrong"]) > np.mean(reached["none"]) - 0.1


def test_a_cell_that_has_just_broken_its_cap_is_not_tried_with_other_cores_or_memory():
    """Neither changes the time of a batch: an exact trial of the cell has told it."""
    world = random_world(Kind.DEVICE, 0)
    cap = world.latency(0.5)
    at = next(c for c in world.space.configurations if world.recorded.composed(world.unseen, c) is not None)
    broken = dict.fromkeys((Figure.P50, Figure.P95, Figure.P99), 1.003 * cap.at_most_s)
    rate = dict(knobs_of(at))["batch"] / broken[Figure.P50]
    trial = Measurement(at, Outcome.OK, 60.0, 0.01, samples_per_s=rate, evidence=Served(broken, broken, peak_gb=0.1))
    job = world.job(caps=(cap,))
    draws = device.draw(world.seen, job, world.space, History((trial,)), 64, np.random.default_rng(0))
    same = [world.seen.cell_of(each) == world.seen.cell_of(at) for each in world.space.configurations]
    assert sum(same) > 1
    assert (sample_values(job, world.space, draws)[:, same] == 0.0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_worth_at_once_is_that_of_one_configuration_after_the_other(objective):
    world, rng = random_world(Kind.DEVICE, 0), np.random.default_rng(0)
    rate, latency = rng.uniform(0, 100, (3, len(world.space))), rng.uniform(0, 1, (3, len(world.space)))
    rate[:, 0] = 0.0
    job = world.job(Goal(objective), (Cap(Figure.P95, 0.5),), min_rate=20.0)
    found = sample_values(job, world.space, Draws(rate, {Figure.P95: latency}))
    for s in range(3):
        for i, configuration in enumerate(world.space.configurations):
            kept = rate[s, i] >= 20 and latency[s, i] <= 0.5
            assert found[s, i] == pytest.approx(
                objective_value(job, configuration.usd_per_hour, rate[s, i]) if kept else 0.0
            )


@given(seed=st.integers(0, 10_000), top=st.floats(0.01, 10))
def test_a_gain_is_a_share_of_the_best_and_nothing_gains_that_is_never_better(seed, top):
    worths = np.random.default_rng(seed).uniform(0, 5, (7, 11))
    gains = expected_gains(worths, top)
    assert (gains >= 0).all()
    assert (gains < 1).all()
    assert (gains[(worths <= top).all(axis=0)] == 0).all()


def test_a_noisy_trial_that_may_only_seem_to_keep_its_cap_counts_for_less():
    world = random_world(Kind.DEVICE, 0)
    job = world.job(caps=(Cap(Figure.P95, 1.0),))
    latency = np.array([[0.5, 0.99, 1.02, 2.0]])
    drawn = Draws(np.ones((1, 4)), {Figure.P95: latency})
    trial = Measurement(world.space.configurations[0], Outcome.OK, 60.0, 0.0, 1.0)
    assert chance_to_mislead(job, drawn, History((trial,))) is None
    wrong = chance_to_mislead(job, drawn, History((replace(trial, rel_error=0.05),)))
    assert wrong[0, [0, 1]].tolist() == [0, 0]
    assert 0.3 < wrong[0, 2] < 0.5
    assert wrong[0, 3] < 1e-6
    assert expected_gains(np.array([[0.0, 0.0, 0.0, 0.0]]), 1.0, wrong)[2] < 0


@pytest.mark.parametrize(("outside", "chosen"), [(0.0, 0), (1.0, 1)])
def test_outside_what_was_seen_a_cap_is_taken_for_one_that_can_be_kept(monkeypatch, outside, chosen):
    """In two of three samples only the first keeps the cap; in the third all do, and the second is worth the most."""
    world = random_world(Kind.LANGUAGE, 0)
    many, usd = len(world.space), world.space.usd_per_s
    worths, latency = np.ones((3, many)), np.full((3, many), 2.0)
    latency[:, 0], latency[2] = 0.5, 0.5
    worths[2, 1] = 9.0
    told = Draws(worths * usd, {Figure.P95: latency}, outside)
    monkeypatch.setitem(BELIEFS, Kind.LANGUAGE, lambda *_: told)
    step = GreyBox(world.seen).next_step(world.job(caps=(Cap(Figure.P95, 1.0),)), world.space, History())
    assert step.configuration == world.space.configurations[chosen]


@pytest.mark.parametrize("kind", list(BELIEFS))
def test_each_kind_of_machines_has_its_belief(kind):
    world = random_world(kind, 0)
    drawn = BELIEFS[kind](world.seen, world.job(), world.space, History(), 16, np.random.default_rng(0))
    assert drawn.rate.shape == (16, len(world.space))


def test_it_does_not_give_up_before_something_keeps_the_cap_while_that_is_possible():
    world = random_world(Kind.DEVICE, 2)
    fastest = min(cell.figures[Figure.P95] for cell in world.unseen.cells.values())
    found = serve(GreyBox(world.seen), world, world.job(caps=(Cap(Figure.P95, 1.02 * fastest),), trials=24))
    assert found.decision.configuration is not None


def test_where_nothing_is_believed_to_run_every_trial_is_another_one():
    """A model far too large for any machine, which fails wherever it is tried."""
    world = random_world(Kind.LANGUAGE, 0)
    job = world.job(Goal(Objective.PER_DOLLAR), (Cap(Figure.ITL_P95, 1e-6),))
    assert isinstance(job.ask, ServingTask)
    giant = replace(job.ask.model, parameters=1e6, weights_mb=None)
    job = replace(job, ask=replace(job.ask, model=giant))
    history = History()
    for _ in range(4):
        step = GreyBox(world.seen).next_step(job, world.space, history)
        assert isinstance(step, Probe)
        assert step.configuration not in history.tried
        failed = Measurement(step.configuration, Outcome.OUT_OF_MEMORY, 60.0, 0.1)
        history = History((*history.measurements, failed))


def test_a_hopeless_cap_ends_the_search_early_and_says_so():
    world = random_world(Kind.DEVICE, 1)
    found = serve(GreyBox(world.seen), world, world.job(caps=(Cap(Figure.P95, 1e-6),), trials=40))
    assert found.decision.configuration is None
    assert len(found.tried) < 12
    assert "no configuration is expected to meet" in found.decision.because


def test_a_choice_close_to_its_cap_is_tried_again_before_the_search_ends():
    world = random_world(Kind.DEVICE, 3)
    at = int(np.argmax(values(world, Objective.PER_DOLLAR)))
    configuration = world.space.configurations[at]
    cell = world.recorded.composed(world.unseen, configuration)
    cap = Cap(Figure.P95, 1.01 * cell.figures[Figure.P95])
    loose = Served(cell.figures, {figure: 1.1 * s for figure, s in cell.figures.items()}, peak_gb=cell.peak_gb)
    measured = Measurement(configuration, Outcome.OK, 60.0, 0.0, cell.rate, 0.03, evidence=loose)
    only, job = world.only(at), world.job(caps=(cap,))
    once = GreyBox(world.seen).next_step(job, only.space, History((measured,)))
    assert isinstance(once, Probe)
    assert once.configuration == configuration
    assert isinstance(GreyBox(world.seen).next_step(job, only.space, History((measured,) * 3)), Finish)


def test_reasons_say_what_is_expected_and_what_the_best_was():
    world = random_world(Kind.DEVICE, 4)
    found = serve(GreyBox(world.seen), world, world.job(trials=4))
    reasons = [
        line.entry.because for line in found.lines if hasattr(line.entry, "launch") and hasattr(line.entry, "because")
    ]
    assert reasons[0].endswith(" expected")
    assert all("best so far" in reason for reason in reasons[1:])


# How many trials it expects


def test_it_expects_one_trial_where_a_twin_was_seen_and_more_where_nobody_was():
    world = with_a_twin(random_world(Kind.DEVICE, 0))
    known = expected_trials(world.seen, world.job(), world.space)
    unknown = expected_trials(replace(world.seen, models=()), world.job(), world.space)
    assert known.median == 1
    assert known.p90 <= 3
    assert unknown.p90 > known.p90


def test_what_it_expects_is_the_same_each_time_and_in_order():
    world = random_world(Kind.DEVICE, 5)
    job = world.job(caps=(world.latency(0.5),))
    first = expected_trials(world.seen, job, world.space, simulations=6)
    assert first == expected_trials(world.seen, job, world.space, simulations=6)
    assert 1 <= first.median <= first.p90 <= 10
    assert "expected to come within" in str(first)


def test_where_nothing_can_keep_the_cap_it_says_so_and_counts_nothing():
    world = random_world(Kind.DEVICE, 5)
    found = expected_trials(world.seen, world.job(caps=(Cap(Figure.P95, 1e-9),)), world.space, simulations=4)
    assert found.chance == 0
    assert str(found) == "no configuration is expected to meet the requirements"


@pytest.mark.night
def test_most_searches_need_no_more_trials_than_was_said():
    held = []
    for seed in range(10):
        world = random_world(Kind.DEVICE, seed)
        job = world.job(caps=(world.latency(0.4),))
        said = expected_trials(world.seen, job, world.space, simulations=8)
        all_ = values(world, Objective.PER_DOLLAR, job.ask.caps[0].at_most_s)
        tried = serve(GreyBox(world.seen), world, job).tried
        good = [all_[world.space.index[each]] >= 0.95 * all_.max() for each in tried]
        held.append(any(good[: said.p90]))
    assert np.mean(held) >= 0.6
