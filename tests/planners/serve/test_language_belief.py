"""The belief about a language model's rate, latencies and memory, before and after its trials."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.beliefs import language
from mlcd.planners.serve.beliefs.language_feasibility import Machine, Tried, counted, learn, machines, prior
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Figure, KnobTable, Served, ServingTask, knobs_of
from mlcd.planners.serve.space import serving_space

USERS = (1, 2, 4, 8, 16, 32, 64)
GPUS = {  # name: dollars an hour, count, GB of all, GB/s of each
    "1 x S": (1.0, 1, 24.0, 600.0),
    "2 x S": (2.0, 2, 48.0, 600.0),
    "1 x M": (3.0, 1, 40.0, 1_500.0),
    "1 x L": (6.0, 1, 80.0, 3_000.0),
    "2 x L": (12.0, 2, 160.0, 3_000.0),
}
ANATOMY = Anatomy(("gpus", "users"))
SPACE = serving_space(KnobTable({"gpus": tuple(GPUS), "users": USERS}, {"gpus": {n: g[0] for n, g in GPUS.items()}}))
NUMBERS = {
    name: {"count": float(count), "memory_gb": gb, "bandwidth_gb_s": gb_s}
    for name, (_, count, gb, gb_s) in GPUS.items()
}


def model(name, billions, rng, splits=True):
    """One of the process that the belief states: physics, a level and a slope of its own, a little for each machine."""
    level, slope, itl = -0.7 + 0.2 * rng.standard_normal(), 0.05 * rng.standard_normal(), 0.2 * rng.standard_normal()
    on = {gpus: 0.05 * rng.standard_normal() for gpus in GPUS}
    cells = {}
    for gpus, (_, count, gb, gb_s) in GPUS.items():
        if 1.2 * 2 * billions > gb or (count > 1 and not splits):
            continue
        for users in USERS:
            at = np.log(users / 8)
            pace = np.log(count * gb_s / (2 * billions)) + 0.7 * np.log(users)
            rate = np.exp(pace + level + slope * at + on[gpus] + 0.03 * rng.standard_normal())
            seconds = users / np.exp(pace) * np.exp(0.8 + itl + 0.03 * rng.standard_normal())
            cells[("gpus", gpus), ("users", users)] = Cell(float(rate), {Figure.ITL_P95: float(seconds)})
    return SeenModel(ModelFacts(name, parameters=billions), cells)


def knowledge(count=5, seed=0):
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(np.log(3), np.log(25), count))
    seen = tuple(model(f"seen{i}", float(size), rng) for i, size in enumerate(sizes))
    return Knowledge(Kind.LANGUAGE, ANATOMY, seen, resources={"gpus": NUMBERS})


def job(facts, *caps):
    service = ServingTask(facts, caps=tuple(Cap(Figure.ITL_P95, cap) for cap in caps))
    return Job("chat", 0.0, Goal(Objective.PER_DOLLAR), ask=service)


def trial(truth, configuration, outcome=Outcome.FAILED):
    cell = truth.cells.get(knobs_of(configuration))
    if cell is None:
        return Measurement(configuration, outcome, 60.0, 0.1)
    served = Served(cell.figures, cell.figures)
    return Measurement(configuration, Outcome.OK, 60.0, 0.1, samples_per_s=cell.rate, rel_error=0.01, evidence=served)


def at(gpus, users=8):
    return next(c for c in SPACE.configurations if knobs_of(c) == (("gpus", gpus), ("users", users)))


def draw(known, asked, history=None, count=200, seed=7):
    return language.draw(known, asked, SPACE, history or History(), count, np.random.default_rng(seed))


def place(gpus, users=8):
    return SPACE.index[at(gpus, users)]


@pytest.mark.parametrize(("trials", "most"), [(0, 1.0), (2, 0.97)])
def test_intervals_hold_what_they_promise(trials, most):
    """80 % intervals of rates and latencies, over unseen models of the stated process.

    Before a trial they are wider than that process asks for: the new model may be of another source.
    """
    inside, total = 0, 0
    for seed in range(12):
        known, rng = knowledge(seed=seed), np.random.default_rng(1_000 + seed)
        truth = model("new", float(np.exp(rng.uniform(np.log(3), np.log(18)))), rng)
        tried = [at("1 x L", 8), at("2 x S", 32)][:trials]
        history = History(tuple(trial(truth, each) for each in tried))
        draws = draw(known, job(truth.facts, 0.1), history)
        for i, configuration in enumerate(SPACE.configurations):
            cell = truth.cells.get(knobs_of(configuration))
            runs = draws.rate[:, i] > 0
            if cell is None or configuration in tried or runs.sum() < 50:
                continue
            for drawn, real in (
                (draws.rate[runs, i], cell.rate),
                (draws.figures[Figure.ITL_P95][runs, i], cell.figures[Figure.ITL_P95]),
            ):
                low, high = np.quantile(drawn, [0.1, 0.9])
                inside, total = inside + (low <= real <= high), total + 1
    assert 0.68 <= inside / total <= most


def test_trials_narrow_what_is_believed_elsewhere():
    known, truth = knowledge(), model("new", 7.0, np.random.default_rng(50))
    history = History((trial(truth, at("1 x L", 8)), trial(truth, at("1 x M", 8))))
    before, after = draw(known, job(truth.facts)), draw(known, job(truth.facts), history)
    spot = place("2 x L", 16)
    assert np.log(after.rate[:, spot] + 1e-9).std() < np.log(before.rate[:, spot] + 1e-9).std()


def test_a_trial_is_drawn_as_it_was_measured():
    truth = model("new", 7.0, np.random.default_rng(51))
    draws = draw(knowledge(), job(truth.facts, 0.1), History((trial(truth, at("1 x L", 8)),)))
    cell = truth.cells[knobs_of(at("1 x L", 8))]
    assert np.allclose(draws.rate[:, place("1 x L", 8)], cell.rate, rtol=0.05)
    assert np.allclose(draws.figures[Figure.ITL_P95][:, place("1 x L", 8)], cell.figures[Figure.ITL_P95], rtol=0.05)


def test_the_same_history_gives_the_same_draws():
    known, truth = knowledge(), model("new", 7.0, np.random.default_rng(52))
    history = History((trial(truth, at("1 x L", 8)),))
    asked = job(truth.facts, 0.1)
    first = language.draw(known, asked, SPACE, history, 50, np.random.default_rng(3))
    language.draw(known, asked, SPACE, History(), 50, np.random.default_rng(4))  # what was asked before leaves no trace
    again = language.draw(known, asked, SPACE, history, 50, np.random.default_rng(3))
    other = language.draw(replace(known), asked, SPACE, history, 50, np.random.default_rng(3))
    assert np.array_equal(first.rate, again.rate)
    assert np.array_equal(first.rate, other.rate)
    assert np.array_equal(first.figures[Figure.ITL_P95], again.figures[Figure.ITL_P95])


def test_a_twin_of_seen_models_needs_no_trial_to_find_its_best():
    one = model("one", 7.0, np.random.default_rng(53))
    twins = tuple(replace(one, facts=replace(one.facts, name=f"twin{i}")) for i in range(4))
    known = Knowledge(Kind.LANGUAGE, ANATOMY, twins, resources={"gpus": NUMBERS})
    draws = draw(known, job(one.facts), count=400)
    usd = np.array([c.usd_per_hour for c in SPACE.configurations])
    worth = (
        np.array([one.cells[knobs_of(c)].rate if knobs_of(c) in one.cells else 0.0 for c in SPACE.configurations]) / usd
    )
    picked = int(np.argmax((draws.rate / usd).mean(axis=0)))
    assert worth[picked] >= 0.93 * worth.max()


def test_a_failure_leaves_less_hope_for_machines_of_no_more_memory():
    known, facts = knowledge(), ModelFacts("new", parameters=14.0)
    failed = History((Measurement(at("1 x M"), Outcome.OUT_OF_MEMORY, 60.0, 0.1),))
    before, after = draw(known, job(facts)), draw(known, job(facts), failed)
    assert np.all(after.rate[:, place("1 x M")] == 0)
    assert (after.rate[:, place("2 x S", 1)] > 0).mean() < (before.rate[:, place("2 x S", 1)] > 0).mean()
    assert (after.rate[:, place("2 x L", 1)] > 0).mean() > 0.5


def test_a_success_says_that_it_fits_wherever_there_is_more_memory():
    known, truth = knowledge(), model("new", 14.0, np.random.default_rng(54))
    draws = draw(known, job(truth.facts), History((trial(truth, at("1 x M", 8)),)))
    assert (draws.rate[:, place("1 x L")] > 0).mean() > 0.85
    assert (draws.rate[:, place("1 x M", 1)] > 0).all()


def test_bad_luck_tells_nothing_of_memory():
    known, facts = knowledge(), ModelFacts("new", parameters=14.0)
    unlucky = History((Measurement(at("1 x M"), Outcome.PREEMPTED, 60.0, 0.1),))
    assert np.array_equal(draw(known, job(facts), unlucky).rate, draw(known, job(facts)).rate)


def test_failing_on_several_gpus_twice_points_to_single_ones():
    small, pair = Machine("1 x L", "L", 1, 80.0, 3_000.0), Machine("2 x L", "L", 2, 160.0, 6_000.0)
    other = Machine("4 x S", "S", 4, 96.0, 2_400.0)
    before = prior()
    after, _ = before.given([Tried(pair, 0.0, 8.0), Tried(other, 0.0, 8.0)], 14.0)
    assert after.chances[:, 0].sum() > 5 * before.chances[:, 0].sum()
    rng = np.random.default_rng(8)
    limits = after.draw([small], 14.0, [], np.array([1.0, 8.0]), 500, rng)
    assert (limits > 0).mean() > 0.8


def test_a_type_of_gpu_on_which_no_seen_model_ran_is_not_hoped_for():
    old, new = Machine("1 x V", "V", 1, 80.0, 900.0), Machine("1 x L", "L", 1, 80.0, 3_000.0)
    seen = [(14.0, (Tried(old, 0.0, 1.0), Tried(new, 64.0))) for _ in range(5)]
    fit, _ = learn(seen).given([], 14.0)
    limits = fit.draw([old, new], 14.0, [], np.array([1.0, 8.0]), 500, np.random.default_rng(9))
    assert (limits[:, 0] > 0).mean() < 0.4 < 0.8 < (limits[:, 1] > 0).mean()


def test_a_load_that_was_refused_bounds_the_users_of_that_machine_alone():
    known, truth = knowledge(), model("new", 7.0, np.random.default_rng(55))
    refused = Measurement(at("1 x L", 32), Outcome.FAILED, 60.0, 0.1)
    draws = draw(known, job(truth.facts), History((trial(truth, at("1 x L", 8)), refused)))
    assert np.all(draws.rate[:, [place("1 x L", 32), place("1 x L", 64)]] == 0)
    assert np.all(draws.rate[:, place("1 x L", 4)] > 0)
    assert (draws.rate[:, place("2 x L", 32)] > 0).mean() > 0.5


def test_what_ran_runs_even_if_fewer_users_once_failed():
    truth = model("new", 7.0, np.random.default_rng(59))
    failed = Measurement(at("1 x L", 4), Outcome.FAILED, 60.0, 0.1)
    draws = draw(knowledge(), job(truth.facts), History((failed, trial(truth, at("1 x L", 16)))))
    assert np.all(draws.rate[:, place("1 x L", 16)] > 0)
    assert np.all(draws.rate[:, place("1 x L", 4)] == 0)


def test_a_size_that_nobody_tells_is_inferred_from_the_rate():
    known = knowledge()
    rates = {}
    for billions in (3.5, 22.0):
        truth = model("new", billions, np.random.default_rng(56))
        history = History((trial(truth, at("1 x L", 8)), trial(truth, at("2 x L", 8))))
        draws = draw(known, job(ModelFacts("new")), history)
        rates[billions] = (draws.rate[:, place("1 x S", 1)] > 0).mean()
    assert rates[3.5] > rates[22.0] + 0.2


def test_parameters_leave_open_how_many_bits_each_has_and_a_file_does_not():
    """20 billion are 40 GB at 16 bits, and 10 at 4: too much for a GPU of 24 GB, or little."""
    known, small = knowledge(), place("1 x S", 1)
    hoped = (draw(known, job(ModelFacts("new", parameters=20.0))).rate[:, small] > 0).mean()
    by_file = (draw(known, job(ModelFacts("new", weights_mb=40_000.0))).rate[:, small] > 0).mean()
    assert by_file < 0.02 < 0.05 < hoped < 0.3


def test_a_model_that_runs_where_16_bits_do_not_fit_is_of_fewer_and_faster_everywhere():
    truth = replace(model("new", 5.0, np.random.default_rng(58)), facts=ModelFacts("new", parameters=20.0))
    known, asked, spot = knowledge(), job(truth.facts), place("1 x M", 8)
    draws = draw(known, asked, History((trial(truth, at("1 x S", 8)),)))
    assert (draws.rate[:, spot] > 0).mean() > 0.8
    assert np.median(draws.rate[:, spot]) == pytest.approx(truth.cells[knobs_of(at("1 x M", 8))].rate, rel=0.3)


def test_one_trial_of_another_source_moves_all_that_is_believed():
    """Eight times faster than any seen model, for every machine and load, as another engine or year may be."""
    slow = model("new", 7.0, np.random.default_rng(59))
    cells = {
        knobs: Cell(8 * each.rate, {Figure.ITL_P95: each.figures[Figure.ITL_P95] / 8})
        for knobs, each in slow.cells.items()
    }
    truth = replace(slow, cells=cells)
    draws = draw(knowledge(), job(truth.facts, 0.1), History((trial(truth, at("2 x L", 1)),)), count=400)
    for where in (("1 x M", 32), ("1 x S", 4), ("1 x L", 16)):
        off = np.log(
            np.median(draws.figures[Figure.ITL_P95][:, place(*where)])
            / cells[knobs_of(at(*where))].figures[Figure.ITL_P95]
        )
        assert abs(off) < np.log(1.6)


def blind(known, letter):
    """As if nobody had run on GPUs of that letter."""
    models = [
        replace(each, cells={at: cell for at, cell in each.cells.items() if letter not in str(at[0][1])})
        for each in known.models
    ]
    return replace(known, models=tuple(models))


def test_how_much_of_a_space_is_outside_what_was_seen():
    """Two of the five machines are of L; two more loads than the seven that were seen make it 2 / 9 at least."""
    known, asked = knowledge(), job(ModelFacts("new", parameters=7.0), 0.1)
    usd = {name: told[0] for name, told in GPUS.items()}
    wider = serving_space(KnobTable({"gpus": tuple(GPUS), "users": (*USERS, 128, 256)}, {"gpus": usd}))
    assert draw(known, asked).outside == 0
    assert draw(blind(known, "L"), asked).outside == pytest.approx(2 / 5)
    assert draw(knowledge(0), asked).outside == 1
    drawn = language.draw(known, asked, wider, History(), 20, np.random.default_rng(0))
    assert drawn.outside == pytest.approx(2 / 9)


@pytest.mark.parametrize(("hidden", "caps", "same"), [("none", [0.1], True), ("L", [0.1], False), ("L", [], True)])
def test_another_crowd_is_supposed_outside_what_was_seen_and_for_figures_alone(monkeypatch, hidden, caps, same):
    known, asked = blind(knowledge(), hidden), job(ModelFacts("new", parameters=7.0), *caps)
    supposed = draw(known, asked)
    monkeypatch.setattr(language, "CROWDS", ((1.0, 1.0),))
    assert np.array_equal(supposed.rate, draw(known, asked).rate) == same


def kept_by_64_users(trials):
    """The chance that they wait 50 ms at the most, on a GPU that nobody ran on, where u wait as long as u / 16 did."""
    numbers = {name: {"count": 1.0, "memory_gb": 80.0, "bandwidth_gb_s": 3_000.0} for name in ("1 x Old", "1 x New")}

    def made(name, billions, gpus, times):
        waits = {users: 0.005 * (1 + users / times / 4) for users in USERS}
        cells = {
            (("gpus", gpus), ("users", users)): Cell(users / wait, {Figure.ITL_P95: wait})
            for users, wait in waits.items()
        }
        return SeenModel(ModelFacts(name, parameters=billions), cells)

    seen = tuple(made(f"seen{i}", billions, "1 x Old", 1) for i, billions in enumerate((5.0, 7.0, 9.0)))
    known = Knowledge(Kind.LANGUAGE, ANATOMY, seen, resources={"gpus": numbers})
    space = serving_space(KnobTable({"gpus": ("1 x New",), "users": USERS}, {"gpus": {"1 x New": 3.0}}))
    truth = made("new", 7.0, "1 x New", 16)
    history = History(tuple(trial(truth, space.configurations[USERS.index(users)]) for users in trials))
    drawn = language.draw(known, job(truth.facts, 0.05), space, history, 400, np.random.default_rng(0))
    return float(np.mean(drawn.figures[Figure.ITL_P95][:, USERS.index(64)] <= 0.05))


def test_users_of_another_engine_may_hardly_wait_for_each_other(monkeypatch):
    """64 users of the seen models wait 85 ms. One user of the new one says little of that, 16 say it all."""
    few, more = kept_by_64_users([1]), kept_by_64_users([1, 16])
    monkeypatch.setattr(language, "CROWDS", ((1.0, 1.0),))
    assert kept_by_64_users([1]) < 0.4 < 0.5 < few < 0.9 < more


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_seen_models_are_enough_to_begin(count):
    draws = draw(knowledge(count), job(ModelFacts("new", parameters=7.0), 0.1))
    usable = draws.rate > 0
    assert usable.mean() > 0.3
    assert np.all(np.isfinite(draws.rate))
    # Physics alone ranks: more bandwidth, more tokens.
    assert np.median(draws.rate[:, place("1 x L", 8)]) > np.median(draws.rate[:, place("1 x S", 8)])


def test_machines_that_nobody_has_numbers_of_are_judged_by_their_price():
    bare = replace(knowledge(), resources={})
    draws = draw(bare, job(ModelFacts("new", parameters=7.0), 0.1))
    assert np.all(np.isfinite(draws.rate))
    assert (draws.rate > 0).any()
    guessed = machines(
        {"1 x A": 2.0, "4 x A": 8.0, "1 x B": 4.0}, {"1 x A": {"memory_gb": 24.0, "bandwidth_gb_s": 600.0}}
    )
    assert guessed["4 x A"].memory_gb == pytest.approx(96.0)
    assert guessed["4 x A"].count == 4
    assert guessed["1 x B"].bandwidth_gb_s == pytest.approx(1_200.0)


def test_a_gpu_that_no_seen_model_ran_on_is_believed_by_its_numbers():
    known = knowledge()
    blind = replace(
        known,
        models=tuple(
            replace(each, cells={knobs: cell for knobs, cell in each.cells.items() if "L" not in str(knobs[0][1])})
            for each in known.models
        ),
    )
    truth = model("new", 7.0, np.random.default_rng(57))
    draws = draw(blind, job(truth.facts), count=400)
    spot, real = place("1 x L", 8), truth.cells[knobs_of(at("1 x L", 8))].rate
    low, high = np.quantile(draws.rate[draws.rate[:, spot] > 0, spot], [0.02, 0.98])
    assert low < real < high


def test_a_name_tells_how_many_of_what():
    assert counted("4 x T4") == (4, "T4")
    assert counted("gaudi") == (1, "gaudi")


def test_a_job_that_serves_nothing_is_a_bug():
    with pytest.raises(ValueError, match="not a service"):
        draw(knowledge(1), Job("train", 1.0))


@given(
    st.integers(0, 3),
    st.sampled_from([None, 0.3, 7.0, 400.0]),
    st.lists(st.tuples(st.integers(0, len(SPACE) - 1), st.sampled_from(["ok", "failed", "oom"])), max_size=6),
)
def test_draws_are_numbers_whatever_happened(count, billions, steps):
    truth, history = model("new", 5.0, np.random.default_rng(58)), []
    for i, how in steps:
        configuration = SPACE.configurations[i]
        if how == "ok":
            history.append(trial(truth, configuration))
        else:
            outcome = Outcome.FAILED if how == "failed" else Outcome.OUT_OF_MEMORY
            history.append(Measurement(configuration, outcome, 60.0, 0.1))
    draws = draw(KNOWN[count], job(ModelFacts("new", parameters=billions), 0.1), History(tuple(history)), count=20)
    assert draws.rate.shape == draws.figures[Figure.ITL_P95].shape == (20, len(SPACE))
    assert np.all(np.isfinite(draws.rate))
    assert np.all(draws.rate >= 0)
    assert np.all(draws.figures[Figure.ITL_P95] > 0)
    assert not np.any(np.isnan(draws.figures[Figure.ITL_P95]))
    assert np.all(np.isinf(draws.figures[Figure.ITL_P95][draws.rate == 0]))


KNOWN = [knowledge(count) for count in range(4)]
