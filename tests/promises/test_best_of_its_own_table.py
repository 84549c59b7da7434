"""No row that an answer shows as certified is better for the user's goal than the choice.

For every planner, in worlds that hypothesis makes up, and read where users read it: the document of `-o json`, the
run's page, and its picture of time against cost. A what-if under another goal is held to the same.

What beats a choice   fastest: less time.   cheapest: fewer dollars.   knee: less of the one, and no more of the other.
                      a service: a higher value, which is what its goal makes large.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.functions import random_world as functions_world
from mlcd_fixtures.market_folders import on_markets
from mlcd_fixtures.scale_clouds import Kind, World

from mlcd.core.drive import search
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Account, Decided, Ledger, Line, Started
from mlcd.core.place import Cloud
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import decide_again
from mlcd.planners.functions.decide import METHODS as FUNCTIONS_METHODS
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.performance import NodePrice, PerformanceModel, from_noise
from mlcd.planners.scale.nouns import Mode, batch_of
from mlcd.planners.serve.known_models import Kind as Served
from mlcd.planners.serve.planner import SERVE_METHODS, serve_method
from mlcd.planners.train.planner import METHODS
from mlcd.reports.document import run_document
from mlcd.reports.functions.words import plan_name
from mlcd.reports.tradeoff import tradeoff_of
from mlcd.reports.view.view import view_of
from mlcd.testing.clouds import bounded_cloud, job_on, random_goal, random_recording
from mlcd.testing.services import random_world as service_world
from mlcd.testing.serving import random_job, serve
from mlcd_bench.baselines.serve import aiconfigurator
from mlcd_bench.serve.engines import ENGINES_ONLY

SOME = settings(SLOW, suppress_health_check=[HealthCheck.too_slow])
ROUNDING = 1 + 1e-9
OBJECTIVES = (Objective.FASTEST, Objective.CHEAPEST, Objective.KNEE)
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Row:
    """A row of an answer: whether it is shown as certified, whether it was chosen, and what it takes."""

    certified: bool
    chosen: bool
    seconds: float
    usd: float

    def beats(self, other: Row, objective: str) -> bool:
        """Under this goal, by more than rounding."""
        faster, cheaper = self.seconds * ROUNDING < other.seconds, self.usd * ROUNDING < other.usd
        if objective == "fastest":
            return faster
        if objective == "cheapest":
            return cheaper
        as_good = self.seconds <= other.seconds and self.usd <= other.usd
        return as_good and (faster or cheaper)


def check(objective: str, rows: Iterable[Row], where: str) -> None:
    """Nothing that is shown as certified beats what was chosen; and where nothing was, nothing is certified."""
    shown = list(rows)
    chosen, certified = [row for row in shown if row.chosen], [row for row in shown if row.certified]
    assert chosen or not certified, f"{where}: a certified row, and nothing was chosen"
    for mine in chosen:
        beaten_by = [row for row in certified if row.beats(mine, objective)]
        assert not beaten_by, f"{where}: {objective}, and {mine} was chosen before {beaten_by}"


def check_answer(lines: Sequence[Line]) -> dict[str, Any]:
    """Every place where the answer of a run is read; the document of it."""
    document: dict[str, Any] = json.loads(json.dumps(run_document(lines)))  # as it is printed
    decision, objective = document["decision"], document["goal"]["objective"]
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    assert account.decision is not None
    if account.decision.done:  # the target was reached while probing: nothing is left to choose for
        return document
    if "trials" in document:
        _check_service(document, view_of(lines)["document"]["trials"])
        return document
    if "plans" in decision:
        check(objective, _rows(decision["plans"]), "plans of -o json")
        _check_better_plans(document)
    else:
        check(objective, _probe_rows(document), "probes of -o json")
        check(objective, _path_rows(view_of(lines)["path"]), "probes of the page")
        _check_forecast(document)
    check(objective, _rows(tradeoff_of(lines)["points"]), "picture of the page")
    return document


def _rows(shown: Sequence[dict[str, Any]]) -> list[Row]:
    return [Row(each["certified"], each["chosen"], each["seconds"], each["usd"]) for each in shown]


def _probe_rows(document: dict[str, Any]) -> list[Row]:
    chosen = document["decision"]["configuration"]
    return [
        Row(finish["certifiable"], _is(probe, chosen), finish["seconds"], finish["usd"])
        for probe in document["probes"]
        if (finish := probe["finish"]) is not None
    ]


def _path_rows(path: Sequence[dict[str, Any]]) -> list[Row]:
    finishes = [(probe, probe["finish"]) for probe in path if probe["finish"] is not None]
    return [Row(probe["certified"], probe["chosen"], ahead["seconds"], ahead["usd"]) for probe, ahead in finishes]


def _is(probe: dict[str, Any], chosen: dict[str, Any] | None) -> bool:
    return chosen is not None and all(probe.get(key) == chosen[key] for key in chosen)


def _check_forecast(document: dict[str, Any]) -> None:
    """What the decision forecasts is what the chosen row shows, and that row is shown as certified."""
    decision, chosen = document["decision"], [row for row in _probe_rows(document) if row.chosen]
    for row in chosen:
        assert (row.seconds, row.usd) == (decision["forecast"]["seconds"], decision["forecast"]["usd"])
        assert row.certified == decision["certified"]
    if decision["configuration"] is not None and not chosen:  # by a stored model alone
        _check_ranking(document["goal"]["objective"], decision["curve"])
        assert not decision["certified"]


def _check_ranking(objective: str, curve: Sequence[dict[str, Any]]) -> None:
    check(objective, [Row(True, p["chosen"], p["time_factor"], p["cost_factor"]) for p in curve], "the ranking")


def _check_better_plans(document: dict[str, Any]) -> None:
    """All plans that are shown keep the limits. Where one beats the chosen one, the decision says so, or why.

    Only a method that was asked for by name may be beaten, or a training: it keeps something back or, without a limit,
    begins with epochs whose functions were not called ahead.
    """
    objective, words, rows = document["goal"]["objective"], document["decision"]["words"], document["decision"]["plans"]
    plans = list(zip(rows, _rows(rows), strict=True))
    for _, chosen in [each for each in plans if each[1].chosen]:
        better = [document["method"] for document, row in plans if row.beats(chosen, objective)]
        if better and document["method"] == "exact":
            assert document["phase"] == "training", f"exact, and {better} are better"
        if better and document["method"] == "exact" and _is_limited(document["goal"]):
            assert "reserved for more epochs than expected" in words
        elif better:
            assert any(f"the {plan_name(method)} plan would" in words for method in better), words


def _is_limited(goal: dict[str, Any]) -> bool:
    return goal["budget_usd"] is not None or goal["deadline_s"] is not None


def _check_service(document: dict[str, Any], on_the_page: Sequence[dict[str, Any]]) -> None:
    decision, certified = document["decision"], [trial for trial in document["trials"] if trial["certified"]]
    assert sum(trial["certified"] is True for trial in on_the_page) == len(certified)
    if decision["configuration"] is None:
        assert not certified, "a certified trial, and nothing was chosen"
        return
    assert decision["certified"] or not certified, "a choice without a certificate before one that has it"
    better = [trial for trial in certified if trial["value"] > decision["measured"]["value"] * ROUNDING]
    assert not better, f"{document['goal']['objective']}: {decision['measured']} was chosen before {better}"


def searched(job: Job, cloud: Cloud, learned: dict[str, Any] | None = None) -> list[Line]:
    """The entries of a search on a ledger in memory, up to its decision."""
    ledger = Ledger(None)
    started = Started(job, cloud.space, "test", cloud.provenance, "test", (), learned)
    book = ledger.begin(job.name, cloud.clock, started)
    planner = planner_of(job)
    search(
        planner.search_strategy(job),
        job,
        cloud.space,
        cloud.profiler,
        book,
        guard=planner.guard(job),
        decide=planner.decide,
    )
    return ledger.lines(book.run)


def asked_again(lines: Sequence[Line], goal: Goal) -> list[Line]:
    """The entries as they would be if the run had been asked for with this goal, decided as a what-if decides."""
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    started, decided = lines[0].entry, Decided(decide_again(account, goal))
    assert isinstance(started, Started)
    first = replace(started, job=replace(started.job, goal=goal))
    entries = [first, *(decided if isinstance(line.entry, Decided) else line.entry for line in lines[1:])]
    return [replace(line, entry=entry) for line, entry in zip(lines, entries, strict=True)]


@SOME
@given(seeds, st.sampled_from([0.0, 0.03, 0.08]), st.sampled_from([Objective.FASTEST, Objective.CHEAPEST]))
@pytest.mark.parametrize("method", sorted(METHODS))
def test_train_chooses_the_best_of_its_table(method: str, seed: int, noise: float, another: Objective) -> None:
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    job = replace(job_on(recording, random_goal(rng, recording)), search=Search(method, seed=seed % 100))
    lines = searched(job, bounded_cloud(recording, noise, seed % 100))
    check_answer(lines)
    check_answer(asked_again(lines, replace(random_goal(rng, recording), objective=another)))


@SOME
@given(seeds, st.sampled_from([0.0, 0.03]), st.sampled_from([Objective.FASTEST, Objective.CHEAPEST]))
def test_on_markets_it_does_by_what_that_is_expected_to_cost(seed: int, noise: float, another: Objective) -> None:
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    job = replace(job_on(recording, random_goal(rng, recording)), search=Search(seed=seed % 100))
    cloud = bounded_cloud(recording, noise, seed % 100)
    lines = searched(job, replace(cloud, space=on_markets(cloud.space, rng)))
    check_answer(lines)
    check_answer(asked_again(lines, replace(random_goal(rng, recording), objective=another)))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Small data sets too, whose epochs are over sooner than machines are up; more nodes take longer to start."""
    kinds = st.builds(
        Kind,
        usd_per_hour=st.floats(0.05, 20.0),
        c0_s=st.floats(1e-3, 0.1),
        c1_s=st.floats(1e-5, 1e-2),
        s0_s=st.floats(1e-3, 0.3),
        s1_s=st.floats(0.0, 0.05),
        most_local=st.sampled_from([np.inf, 64.0, 16.0]),
    )
    world = World(
        tuple(draw(st.lists(kinds, min_size=1, max_size=2))),
        tuple(sorted(draw(st.sets(st.sampled_from((1, 2, 4, 8)), min_size=1)))),
        tuple(sorted(draw(st.sets(st.sampled_from((32, 64, 128, 256)), min_size=1)))),
        epochs=draw(st.floats(1.0, 60.0)),
        most_epochs=draw(st.sampled_from([1.0, 40.0, 20_000.0])),
        noise_scale=draw(st.floats(10.0, 1e4)),
        startup_per_node_s=draw(st.sampled_from([0.0, 10.0])),
        error=draw(st.sampled_from([0.0, 0.03])),
        seed=draw(st.integers(0, 99)),
    )
    fastest = max(world.rate(c) for c in world.space.configurations)
    return replace(world, dataset=fastest * world.probe_s * draw(st.floats(1.0, 500.0)) / world.most_epochs)


@st.composite
def goals(draw: st.DrawFn, world: World) -> Goal:
    """From hopeless to generous, in one limit, in both, or in none."""
    takes = {c: world.dataset * world.most_epochs / world.rate(c) for c in world.space.configurations}
    factor = st.one_of(st.none(), st.floats(0.3, 10.0))
    budget, deadline = draw(factor), draw(factor)
    return Goal(
        draw(st.sampled_from(OBJECTIVES)),
        None if budget is None else budget * min(c.usd(seconds) for c, seconds in takes.items()),
        None if deadline is None else deadline * min(takes.values()),
    )


def learned(world: World, epochs: float | None) -> dict[str, Any]:
    """What an earlier run of the job has left behind; `epochs` None: it knows no more than how batches compare."""
    seen = [c for c in world.space.configurations if c.offer.instance_type == "type-0"]
    batches, nodes = np.array([float(batch_of(c) or 1) for c in seen]), np.array([float(c.nodes) for c in seen])
    steps = fit_iteration_time(nodes, batches / nodes, batches / np.array([world.rate(c) for c in seen]))
    shape = from_noise(64.0, epochs, world.noise_scale or 1.0)
    model = PerformanceModel(steps, shape, world.dataset, 1, NodePrice(1.0))
    found: dict[str, Any] = json.loads(json.dumps(model.document()))
    return found


LITTLE_DATA = World(
    nodes=(1, 2, 4, 8),
    batches=(256,),
    dataset=500.0,
    epochs=15_000.0,
    most_epochs=20_000.0,
    startup_per_node_s=10.0,
)
"""Its epochs take a second: counted in these, what starts a second sooner would be the fastest."""


@SOME
@given(st.data(), worlds() | st.just(LITTLE_DATA), st.sampled_from(["nothing", "ratios", "epochs"]))
@pytest.mark.parametrize("mode", list(Mode))
def test_scale_chooses_the_best_of_its_table(mode: Mode, data: st.DataObject, world: World, knows: str) -> None:
    job = world.job(data.draw(goals(world)), mode)
    epochs = world.epochs * data.draw(st.floats(0.3, 3.0)) if knows == "epochs" else None
    lines = searched(job, world.cloud(), None if knows == "nothing" else learned(world, epochs))
    check_answer(lines)
    check_answer(asked_again(lines, data.draw(goals(world))))


@SOME
@given(st.data(), seeds)
@pytest.mark.parametrize("method", sorted(SERVE_METHODS))
def test_serve_chooses_the_best_of_its_trials(method: str, data: st.DataObject, seed: int) -> None:
    if method == aiconfigurator.NAME and not aiconfigurator.is_installed():
        pytest.skip("pip install 'mlcd[aiconfigurator]'")
    kind = data.draw(st.sampled_from([Served.ENGINES] if method in ENGINES_ONLY else list(Served)))
    world, rng = service_world(kind, seed % 1_000), np.random.default_rng(seed)
    job = random_job(world, rng)
    strategy = serve_method(Search(method, seed=seed % 100), world.seen)
    lines = serve(strategy, world, job, 0.03, seed % 100).lines
    check_answer(lines)
    check_answer(asked_again(lines, random_job(world, rng).goal))


@SOME
@given(seeds, st.booleans())
@example(241, False)
@example(825, False)
@example(5740579, False)  # no allocation fits, and a what-if says so, too
@pytest.mark.parametrize("method", sorted(FUNCTIONS_METHODS))
def test_functions_choose_the_best_of_their_plans(method: str, seed: int, tuning: bool) -> None:
    rng = np.random.default_rng(seed)
    world = functions_world(rng, tuning=tuning)
    job = replace(world.job, search=replace(world.job.search, method=method))
    lines = searched(job, world.cloud())
    check_answer(lines)
    other = Objective.CHEAPEST if job.goal.objective is Objective.FASTEST else Objective.FASTEST
    check_answer(asked_again(lines, replace(job.goal, objective=other)))
