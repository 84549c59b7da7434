"""The belief about a model on instance types, before and after its trials."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.beliefs import instances
from mlcd.planners.serve.beliefs.instances import instance_types
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Figure, KnobTable, Served, ServingTask, knobs_of
from mlcd.planners.serve.space import serving_space

BATCHES = (8, 16, 32, 64, 128, 256)
TYPES = {"c5.xlarge": 0.17, "c5.4xlarge": 0.68, "m5.large": 0.10, "m5.2xlarge": 0.38, "g4dn.xlarge": 0.53}
FAMILIES = {"c5": 0.1, "m5": 0.0, "g4dn": 1.5}
ANATOMY = Anatomy(("instance_type", "batch"))


def space_of(*types):
    return serving_space(KnobTable({"instance_type": types, "batch": BATCHES}, {"instance_type": TYPES}))


SPACE = space_of(*TYPES)


def model(name, rng, types=tuple(TYPES)):
    """A batch takes a floor and then time by its size; machines differ by family, and by vCPUs as far as they help."""
    level, scaling = rng.standard_normal(), 0.7 + 0.2 * rng.standard_normal()
    floor = 10.0 * np.exp(0.3 * rng.standard_normal())
    cells = {}
    for kind in instance_types({each: TYPES[each] for each in types}, {}):
        speed = FAMILIES[kind.family] + 0.05 * rng.standard_normal() + scaling * np.log(kind.vcpus / 8)
        for batch in BATCHES:
            seconds = 1e-3 * (floor + batch) * np.exp(level - speed + 0.01 * rng.standard_normal())
            figures = {Figure.P50: seconds, Figure.P95: 1.05 * seconds * np.exp(0.005 * rng.standard_normal())}
            cells[("instance_type", kind.name), ("batch", batch)] = Cell(float(batch / seconds), figures)
    return SeenModel(ModelFacts(name), cells)


def knowledge(count=5, seed=0, types=tuple(TYPES)):
    rng = np.random.default_rng(seed)
    return Knowledge(Kind.INSTANCES, ANATOMY, tuple(model(f"seen{i}", rng, types) for i in range(count)))


KNOWN = [knowledge(count) for count in range(4)]


def job(*caps):
    service = ServingTask(ModelFacts("new"), caps=tuple(Cap(Figure.P95, cap) for cap in caps))
    return Job("answers", 0.0, Goal(Objective.PER_DOLLAR), ask=service)


def at(name, batch=64):
    return next(c for c in SPACE.configurations if knobs_of(c) == (("instance_type", name), ("batch", batch)))


def place(name, batch=64):
    return SPACE.index[at(name, batch)]


def trial(truth, configuration):
    cell = truth.cells[knobs_of(configuration)]
    served = Served(cell.figures, cell.figures)
    return Measurement(configuration, Outcome.OK, 60.0, 0.1, samples_per_s=cell.rate, rel_error=0.005, evidence=served)


def draw(known, history=None, count=200, seed=7):
    return instances.draw(known, job(0.1), SPACE, history or History(), count, np.random.default_rng(seed))


@pytest.mark.parametrize("trials", [0, 2])
def test_intervals_hold_what_they_promise(trials):
    """80 % intervals of rates and latencies, over unseen models of the process above."""
    inside, total = 0, 0
    for seed in range(12):
        truth = model("new", np.random.default_rng(1_000 + seed))
        tried = [at("m5.large", 64), at("g4dn.xlarge", 8)][:trials]
        draws = draw(knowledge(seed=seed), History(tuple(trial(truth, each) for each in tried)))
        for i, configuration in enumerate(SPACE.configurations):
            if configuration in tried:
                continue
            cell = truth.cells[knobs_of(configuration)]
            pairs = ((draws.rate, cell.rate), (draws.figures[Figure.P95], cell.figures[Figure.P95]))
            for drawn, real in pairs:
                low, high = np.quantile(drawn[:, i], [0.1, 0.9])
                inside, total = inside + (low <= real <= high), total + 1
    # Before a trial they are wider: how far the seen models are to be trusted is not known yet.
    assert 0.65 <= inside / total <= (0.97 if trials else 1.0)


def test_one_trial_tells_of_every_batch_and_type():
    truth = model("new", np.random.default_rng(60))
    before, after = draw(knowledge()), draw(knowledge(), History((trial(truth, at("m5.2xlarge", 64)),)))
    others = [i for i in range(len(SPACE)) if i != place("m5.2xlarge", 64)]
    assert np.all(np.log(after.rate[:, others]).std(axis=0) < 0.7 * np.log(before.rate[:, others]).std(axis=0))


def test_a_trial_is_drawn_as_it_was_measured():
    truth = model("new", np.random.default_rng(61))
    draws = draw(knowledge(), History((trial(truth, at("m5.2xlarge", 64)),)))
    cell = truth.cells[knobs_of(at("m5.2xlarge", 64))]
    assert np.allclose(draws.rate[:, place("m5.2xlarge", 64)], cell.rate, rtol=0.03)
    assert np.allclose(draws.figures[Figure.P95][:, place("m5.2xlarge", 64)], cell.figures[Figure.P95], rtol=0.06)


def test_rate_and_latency_of_a_sample_belong_together():
    draws = draw(knowledge())
    spot = place("m5.2xlarge", 64)
    together = np.corrcoef(np.log(draws.rate[:, spot]), np.log(draws.figures[Figure.P95][:, spot]))[0, 1]
    assert together < -0.9


def test_the_same_history_gives_the_same_draws():
    truth = model("new", np.random.default_rng(62))
    history = History((trial(truth, at("c5.xlarge", 16)),))
    assert np.array_equal(draw(knowledge(), history).rate, draw(knowledge(), history).rate)


def test_a_twin_of_seen_models_needs_no_trial_to_find_its_best():
    one = model("one", np.random.default_rng(63))
    twins = tuple(replace(one, facts=ModelFacts(f"twin{i}")) for i in range(4))
    draws = draw(Knowledge(Kind.INSTANCES, ANATOMY, twins), count=400)
    usd = np.array([c.usd_per_hour for c in SPACE.configurations])
    worth = np.array([one.cells[knobs_of(c)].rate for c in SPACE.configurations]) / usd
    picked = int(np.argmax(np.median(draws.rate / usd, axis=0)))
    assert worth[picked] >= 0.93 * worth.max()


def test_a_size_that_no_seen_model_ran_on_is_known_by_its_family_and_its_vcpus():
    known = knowledge(types=("c5.xlarge", "m5.large", "m5.2xlarge", "g4dn.xlarge"))
    truth = model("new", np.random.default_rng(64))
    draws = draw(known, History((trial(truth, at("c5.xlarge", 64)), trial(truth, at("m5.2xlarge", 64)))))
    middle = np.median(draws.rate[:, place("c5.4xlarge", 64)])
    assert middle == pytest.approx(truth.cells[knobs_of(at("c5.4xlarge", 64))].rate, rel=0.5)


def test_an_accelerator_that_is_told_is_hoped_for_even_if_nobody_saw_one():
    cpus = knowledge(types=("c5.xlarge", "c5.4xlarge", "m5.large", "m5.2xlarge"))
    told = replace(cpus, resources={"instance_type": {"g4dn.xlarge": {"vcpus": 4.0, "accelerators": 1.0}}})
    truth = model("new", np.random.default_rng(65))
    history, spot = History((trial(truth, at("c5.xlarge", 64)),)), place("g4dn.xlarge", 64)
    real = truth.cells[knobs_of(at("g4dn.xlarge", 64))].rate
    assert np.quantile(draw(told, history).rate[:, spot], 0.95) > real
    assert np.log(draw(told, history).rate[:, spot]).std() > np.log(draw(cpus, history).rate[:, spot]).std()


def test_where_it_failed_no_larger_batch_is_tried_and_other_types_are_untouched():
    failed = Measurement(at("m5.large", 64), Outcome.OUT_OF_MEMORY, 60.0, 0.1)
    draws = draw(knowledge(), History((failed,)))
    assert np.all(draws.rate[:, [place("m5.large", batch) for batch in (64, 128, 256)]] == 0)
    assert np.all(np.isinf(draws.figures[Figure.P95][:, place("m5.large", 256)]))
    assert 0.2 < (draws.rate[:, place("m5.large", 8)] > 0).mean() < 0.8
    assert np.all(draws.rate[:, place("c5.xlarge", 256)] > 0)


def test_what_ran_at_a_smaller_batch_still_runs():
    truth = model("new", np.random.default_rng(66))
    failed = Measurement(at("m5.large", 256), Outcome.FAILED, 60.0, 0.1)
    draws = draw(knowledge(), History((trial(truth, at("m5.large", 32)), failed)))
    assert np.all(draws.rate[:, [place("m5.large", batch) for batch in (8, 16, 32)]] > 0)


def test_vcpus_are_told_or_read_from_the_name_or_guessed_from_the_price():
    usd = {"c5.4xlarge": 0.68, "r5.large": 0.126, "n2-standard-8": 0.39, "box": 0.40, "m5.metal": 4.6}
    found = {each.name: each for each in instance_types(usd, {"r5.large": {"vcpus": 3.0}})}
    assert [found[name].vcpus for name in usd] == [16.0, 3.0, 8.0, pytest.approx(8.0), pytest.approx(92.0)]
    assert [found[name].family for name in usd] == ["c5", "r5", "n2-standard", "box", "m5"]


@given(
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, len(SPACE) - 1), st.booleans()), max_size=6),
)
def test_draws_are_numbers_whatever_happened(count, steps):
    truth, history = model("new", np.random.default_rng(67)), []
    for i, ran in steps:
        configuration = SPACE.configurations[i]
        failed = Measurement(configuration, Outcome.FAILED, 60.0, 0.1)
        history.append(trial(truth, configuration) if ran else failed)
    draws = draw(KNOWN[count], History(tuple(history)), count=20)
    assert draws.rate.shape == draws.figures[Figure.P95].shape == (20, len(SPACE))
    assert np.all(np.isfinite(draws.rate))
    assert np.all(draws.rate >= 0)
    assert np.all(draws.figures[Figure.P95] > 0)
