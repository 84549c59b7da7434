"""Stage plans: the exact one compared with oracles, and the promises of every planner."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.functions import taken
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Objective
from mlcd.planners.functions.decide import METHODS
from mlcd.planners.functions.epoch_model.boundary import Boundary, hull
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.epoch_model.published import published
from mlcd.planners.functions.exact import merge, solve
from mlcd.planners.functions.knapsack import Knapsack, knapsack, relax
from mlcd.planners.functions.nouns import FunctionsTask, Stage, StagePlan, Tuning
from mlcd.planners.functions.problem import Menu, StageProblem, cheapest, fastest
from mlcd.planners.functions.tariff import load_tariff
from mlcd.planners.functions.workload import Workload

PLANNERS = {name: method.plan_stages for name, method in METHODS.items()}
IMAGES = Workload("mobilenet", "images", samples=60_000, data_mb=184.0, model_mb=12.0, batch=128)
HIGGS = Workload("lr", "higgs", samples=11_000_000, data_mb=1_276.0, model_mb=0.000_116, batch=10_000)


@dataclass(frozen=True, eq=False)
class Given:
    """Menus that somebody wrote down, the same for every storage."""

    menus: tuple[Menu, ...]
    limits: FunctionsTask = field(default_factory=lambda: FunctionsTask(IMAGES))

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(menu.stage for menu in self.menus)

    @property
    def static_menus(self) -> list[tuple[Menu, ...]]:
        """The i-th point is the same allocation everywhere; those that not all menus have are left out."""
        shortest = min(len(each) for each in self.menus)
        return [tuple(replace(each, seconds=each.seconds[:shortest], usd=each.usd[:shortest]) for each in self.menus)]


def menu(stage: Stage, seconds: np.ndarray, usd: np.ndarray) -> Menu:
    """Of points in any order: what is Pareto-minimal of them."""
    order = np.lexsort((usd, seconds))
    least = np.minimum.accumulate(usd[order])
    order = order[np.append(True, least[1:] < least[:-1])]
    ones = np.arange(1, len(order) + 1)
    takes = seconds[order], usd[order]
    points = Boundary(ones, 128 * ones, 0 * ones, ("s3",), *takes, *takes)
    return Menu(stage, points, stage.epochs * points.seconds, stage.trials * stage.epochs * points.usd)


NEARLY = st.sampled_from([0.3, 0.1 + 0.2, np.nextafter(0.3, 0), 0.1, 0.7, 0.1 * 3 + 0.4])
NUMBERS = st.one_of(st.integers(1, 12).map(float), st.floats(0.01, 100.0), NEARLY)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6)


@st.composite
def small(draw) -> tuple[Given, Goal]:
    """One to four stages, and a limit that may be met exactly, or by nothing."""
    menus = []
    for at, points in enumerate(draw(st.lists(POINTS, min_size=1, max_size=4))):
        seconds, usd = np.array(points).T
        menus.append(menu(Stage(2 ** (4 - at), 1), seconds, usd))
    some = [menu.planned(draw(st.integers(0, len(menu) - 1))) for menu in menus]
    factor = draw(st.sampled_from([1.0, 1.0, 0.9, 0.5, 1.3, 10.0]))
    usd, seconds = StagePlan("", tuple(some)).usd * factor, StagePlan("", tuple(some)).seconds * factor
    both = draw(st.booleans())
    if draw(st.booleans()):
        return Given(tuple(menus)), Goal(Objective.FASTEST, usd, 1.2 * seconds if both else None)
    return Given(tuple(menus)), Goal(Objective.CHEAPEST, 1.2 * usd if both else None, seconds)


def objective(plan: StagePlan, goal: Goal) -> float:
    return plan.usd if goal.objective is Objective.CHEAPEST else plan.seconds


def brute_force(problem: Given, goal: Goal) -> float | None:
    """The least objective of all plans that keep the limits."""
    plans = (
        StagePlan("", tuple(menu.planned(point) for menu, point in zip(problem.menus, points, strict=True)))
        for points in product(*(range(len(menu)) for menu in problem.menus))
    )
    return min((objective(plan, goal) for plan in plans if goal.allows(plan.usd, plan.seconds)), default=None)


def whole(problem: Given) -> bool:
    return all((numbers % 1 == 0).all() for menu in problem.menus for numbers in (menu.seconds, menu.usd))


def with_limits(goal: Goal, factor: float) -> Goal:
    """The same with both limits times this."""
    budget, deadline = (None if each is None else factor * each for each in (goal.budget_usd, goal.deadline_s))
    return replace(goal, budget_usd=budget, deadline_s=deadline)


@given(small())
def test_the_exact_plan_is_the_best_of_all_plans_or_there_is_none(case):
    problem, goal = case
    plan, best = PLANNERS["exact"](problem, goal), brute_force(problem, goal)
    if plan is not None:
        assert goal.allows(plan.usd, plan.seconds)
        assert best <= objective(plan, goal)
    if best is not None:
        # whole numbers add up the same in any order; others may weigh a hair more or less than the limit
        clear = best if whole(problem) else brute_force(problem, with_limits(goal, 1 - 1e-12))
        assert clear is None or objective(plan, goal) <= clear * (1 + 1e-12)


@given(small())
def test_no_planner_breaks_a_limit_and_none_beats_the_exact_one(case):
    problem, goal = case
    best = PLANNERS["exact"](problem, with_limits(goal, 1 + 1e-11))
    for planner in PLANNERS.values():
        plan = planner(problem, goal)
        if plan is not None:
            assert goal.allows(plan.usd, plan.seconds)
            assert best is not None
            assert objective(best, goal) <= objective(plan, goal) * (1 + 1e-12)


def milp_value(sack: Knapsack) -> float:
    """The least value by integer programming, proven without a gap."""
    values, weights = np.concatenate(sack.values), np.concatenate(sack.weights)
    stage = np.repeat(np.arange(len(sack.values)), [len(each) for each in sack.values])
    one_each = csr_array((np.ones(len(stage)), (stage, np.arange(len(stage)))))
    # its tolerance is an absolute 1e-6, so that a limit of 1 would be broken by as much
    limits = [LinearConstraint(one_each, 1, 1), LinearConstraint(1e3 * weights / sack.limit, ub=1e3)]
    found = milp(
        values, constraints=limits, integrality=np.ones(len(values)), bounds=(0, 1), options={"mip_rel_gap": 0}
    )
    assert found.status == 0, found.message
    picked = found.x > 0.5
    assert picked.sum() == len(sack.values)
    assert weights[picked].sum() <= sack.limit * (1 + 1e-12)
    return float(values[picked].sum())


def random_sack(seed: int, stages: int, points: int, bend: float, factor: float) -> Knapsack:
    """Stages of halving, with gaps and dents: below a bend of 1 nothing between the ends is on the hull."""
    rng = np.random.default_rng(seed)
    values, weights = [], []
    for stage in range(stages):
        at = np.sort(rng.uniform(0, 1, points))
        dented = 1 + 20 * (1 - at ** (1 / bend)) * rng.uniform(0.97, 1.03, points)
        one = menu(Stage(2 ** (stages - stage), 1), 10 + 100 * at, dented)
        values.append(one.seconds)
        weights.append(one.usd)
    return Knapsack(tuple(values), tuple(weights), factor * sum(float(each[-1]) for each in weights))


@pytest.mark.parametrize(("seed", "bend", "factor"), [(0, 3.0, 1.5), (1, 3.0, 4.0), (2, 0.7, 2.0), (3, 1.0, 3.0)])
def test_the_exact_plan_is_what_integer_programming_finds(seed, bend, factor):
    sack = random_sack(seed, 14, 200, bend, factor)
    picks = solve(sack, sack.lightest)
    assert sack.keeps(picks)
    assert sack.value(picks) == pytest.approx(milp_value(sack), rel=1e-9)


@pytest.mark.parametrize("factor", [1.1, 1.4])
def test_a_loose_bound_is_solved_by_halving(factor):
    rng = np.random.default_rng(0)
    at = np.sort(np.append(rng.uniform(0, 0.2, 300), rng.uniform(0.7, 1, 300)))  # as where one storage gives way
    values, weights = 10 + 100 * at, 1 + 20 * (1 - at) ** 3
    trials = [2.0**stage for stage in range(8, 0, -1)]
    sack = Knapsack((values,) * 8, tuple(each * weights for each in trials), factor * sum(trials) * float(weights[-1]))
    picks = solve(sack, sack.lightest)
    assert sack.keeps(picks)
    assert relax(sack).bound < 0.9999 * sack.value(picks)
    assert sack.value(picks) == pytest.approx(milp_value(sack), rel=1e-9)


@given(POINTS)
def test_the_hull_lies_below_all_points_and_its_corners_are_points(points):
    seconds, usd = np.array(points).T
    one = menu(Stage(1, 1), seconds, usd)
    corners = hull(one.seconds, one.usd)
    below = np.interp(one.seconds, one.seconds[corners], one.usd[corners])
    assert (below <= one.usd * (1 + 1e-9)).all()
    slopes = np.diff(one.usd[corners]) / np.diff(one.seconds[corners])
    assert (np.diff(slopes) > 0).all()


@given(small())
def test_merging_finds_only_plans_better_than_the_best_so_far(case):
    problem, goal = case[0], with_limits(case[1], 1 + 1e-9)
    best = PLANNERS["exact"](problem, goal)
    if best is not None and goal.objective is Objective.FASTEST:
        sack = Knapsack(
            tuple(each.seconds for each in problem.menus), tuple(each.usd for each in problem.menus), goal.budget_usd
        )
        assert merge(sack, best.seconds) is None
        found = merge(sack, best.seconds * 1.01)
        assert found is not None
        assert sack.value(found) == pytest.approx(best.seconds, rel=1e-11)


def on_aws(workload: Workload, trials: int = 256, **limits: object) -> StageProblem:
    """Tuning on AWS as published, warm, with a smaller space than the whole."""
    tariff = load_tariff("aws", model_mb=workload.model_mb)
    space = replace(FunctionsTask(workload, functions=(1, 100), memory_mb=(512, 3_008)), **limits)
    return StageProblem(EpochModel(workload, tariff, published(workload)), space, Tuning(trials).stages)


PROBLEMS = {
    "all at once": on_aws(IMAGES),
    "in waves": on_aws(IMAGES, concurrency=120),
    "in waves by memory": on_aws(IMAGES, trials=32, memory_at_once_mb=60_000),
    "small model": on_aws(HIGGS, trials=64),
    "one stage": on_aws(IMAGES, trials=1),
}


@st.composite
def goals(draw, problem: StageProblem) -> Goal:
    """Either problem, from a limit that only one plan keeps, or none, to one that all keep."""
    factor = draw(st.sampled_from([0.99, 1.0, 1.01, 1.1, 1.5, 3.0, 30.0]))
    usd, seconds = factor * cheapest(problem).usd, factor * fastest(problem).seconds
    if draw(st.booleans()):
        return Goal(Objective.FASTEST, usd, draw(st.sampled_from([None, cheapest(problem).seconds / 2])))
    return Goal(Objective.CHEAPEST, draw(st.sampled_from([None, fastest(problem).usd / 2])), seconds)


@pytest.mark.parametrize("name", PROBLEMS)
@SLOW
@given(data=st.data())
def test_every_plan_has_the_models_seconds_and_dollars_and_keeps_its_limits(name, data):
    problem = PROBLEMS[name]
    goal = data.draw(goals(problem))
    for method, planner in PLANNERS.items():
        plan = planner(problem, goal)
        if plan is None:
            continue
        assert plan.method == method
        assert goal.allows(plan.usd, plan.seconds)
        assert tuple(each.stage for each in plan.stages) == problem.stages
        for each in plan.stages:
            here, trials = each.allocation, each.stage.trials
            waves = -(-trials // problem.limits.trials_at_once(here, trials))
            assert each.seconds == pytest.approx(each.stage.epochs * waves * problem.model.epoch_s(here), rel=1e-12)
            assert each.usd == pytest.approx(trials * each.stage.epochs * problem.model.epoch_usd(here), rel=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
@SLOW
@given(data=st.data())
def test_greedy_and_exact_are_never_worse_than_static_even_at_the_static_plans_limit(name, data):
    problem = PROBLEMS[name]
    goal = data.draw(goals(problem))
    static = PLANNERS["lambdaml"](problem, goal)
    if static is not None:
        if goal.objective is Objective.FASTEST:
            goal = replace(goal, budget_usd=data.draw(st.sampled_from([goal.budget_usd, static.usd])))
        else:
            goal = replace(goal, deadline_s=data.draw(st.sampled_from([goal.deadline_s, static.seconds])))
    exact, greedy = PLANNERS["exact"](problem, goal), PLANNERS["greedy"](problem, goal)
    if static is not None:
        assert exact is not None
        assert greedy is not None
        assert objective(greedy, goal) <= objective(static, goal)
    if greedy is not None:
        assert exact is not None
        assert objective(exact, goal) <= objective(greedy, goal) * (1 + 1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_there_is_a_plan_exactly_if_the_limit_is_at_least_the_smallest_possible(name):
    problem = PROBLEMS[name]
    for method in ("exact", "greedy"):
        least_usd, least_s = cheapest(problem).usd, fastest(problem).seconds
        assert PLANNERS[method](problem, Goal(Objective.FASTEST, least_usd)) is not None
        assert PLANNERS[method](problem, Goal(Objective.FASTEST, np.nextafter(least_usd, 0))) is None
        assert PLANNERS[method](problem, Goal(Objective.CHEAPEST, None, least_s)) is not None
        assert PLANNERS[method](problem, Goal(Objective.CHEAPEST, None, np.nextafter(least_s, 0))) is None


@pytest.mark.parametrize("method", PLANNERS)
def test_without_limits_every_planner_finds_the_best_plan_of_its_storages(method):
    problem = PROBLEMS["all at once"]
    storages = {"siren": ("s3",), "cirrus": ("vm-ps",)}.get(method, problem.limits.storages)
    alone = replace(problem, limits=replace(problem.limits, storages=storages))
    assert PLANNERS[method](problem, Goal()).stages == fastest(alone).stages
    assert PLANNERS[method](problem, Goal(Objective.CHEAPEST)).stages == cheapest(alone).stages


def test_a_limit_on_the_objective_itself_is_kept_or_there_is_no_plan():
    problem = PROBLEMS["all at once"]
    budget = 1.5 * cheapest(problem).usd
    best = PLANNERS["exact"](problem, Goal(Objective.FASTEST, budget))
    assert PLANNERS["exact"](problem, Goal(Objective.FASTEST, budget, best.seconds)) == best
    assert PLANNERS["exact"](problem, Goal(Objective.FASTEST, budget, 0.999 * best.seconds)) is None


def test_lambdaml_and_cirrus_allocate_the_same_to_all_stages_and_cirrus_a_parameter_server():
    for name in ("all at once", "in waves"):
        goal = Goal(Objective.FASTEST, 3 * cheapest(PROBLEMS[name]).usd)
        for method, storages in (("lambdaml", PROBLEMS[name].limits.storages), ("cirrus", ("vm-ps",))):
            (allocation,) = {each.allocation for each in PLANNERS[method](PROBLEMS[name], goal).stages}
            assert allocation.storage in storages


@pytest.mark.parametrize("name", ["all at once", "small model"])
def test_lambdamls_plan_is_the_best_with_one_allocation_for_all_stages(name):
    problem = PROBLEMS[name]
    goal = Goal(Objective.FASTEST, 1.4 * cheapest(problem).usd)
    plan = PLANNERS["lambdaml"](problem, goal)
    rounds = sum(each.epochs for each in problem.stages)
    runs = sum(each.epochs * each.trials for each in problem.stages)
    for storage in filter(problem.model.exists, problem.limits.storages):
        n, m = np.arange(1, 101)[:, None], np.arange(512, 3_009)
        seconds, usd = taken(problem.model, n, m, storage)
        assert rounds * seconds[runs * usd <= goal.budget_usd].min(initial=np.inf) >= plan.seconds * (1 - 1e-12)


def test_siren_uses_s3_and_spends_more_on_early_stages():
    problem = PROBLEMS["all at once"]
    only = replace(problem, limits=replace(problem.limits, storages=("s3",)))
    for goal in (
        Goal(Objective.FASTEST, 1.5 * cheapest(only).usd),
        Goal(Objective.CHEAPEST, None, 2 * fastest(only).seconds),
    ):
        plan = PLANNERS["siren"](problem, goal)
        assert {each.allocation.storage for each in plan.stages} == {"s3"}
        spent = [each.usd / each.stage.trials for each in plan.stages]
        assert all(early >= late for early, late in pairwise(spent))
        assert spent[0] > spent[-1]


def test_fixed_gives_every_stage_the_same_share_and_has_no_plan_if_that_is_too_little():
    problem = PROBLEMS["all at once"]
    stages = len(problem.stages)
    needed = stages * cheapest(problem).stages[0].usd
    plan = PLANNERS["fixed"](problem, Goal(Objective.FASTEST, 1.01 * needed))
    assert max(each.usd for each in plan.stages) <= 1.01 * needed / stages
    assert PLANNERS["fixed"](problem, Goal(Objective.FASTEST, 0.99 * needed)) is None
    assert PLANNERS["exact"](problem, Goal(Objective.FASTEST, 0.99 * needed)) is not None


def test_the_error_about_a_model_that_no_storage_can_hold_is_one_line():
    problem = on_aws(IMAGES, storages=("dynamodb",))
    assert all(planner(problem, Goal()) is None for planner in PLANNERS.values())
    with pytest.raises(UserError, match="none of dynamodb can hold a model of 12 MB"):
        fastest(problem)
    with pytest.raises(UserError, match="fits into what may run at once"):
        cheapest(on_aws(IMAGES, functions=(10, 100), concurrency=5))


def test_sixteen_thousand_trials_over_the_whole_space_are_planned_optimally_in_two_seconds():
    tariff = load_tariff("aws", model_mb=IMAGES.model_mb)
    problem = StageProblem(EpochModel(IMAGES, tariff, published(IMAGES)), FunctionsTask(IMAGES), Tuning(16_384).stages)
    started = time.process_time()
    goal = Goal(Objective.FASTEST, 1.2 * cheapest(problem).usd)
    plan = PLANNERS["exact"](problem, goal)
    assert time.process_time() - started < 2.0
    assert len(plan.stages) == 14
    assert plan.seconds < PLANNERS["lambdaml"](problem, goal).seconds
    sack = knapsack(problem.menus, goal)
    relaxed = relax(sack)
    # a point that raises the bound above this plan is in no better one: what is left is enough for the oracle
    most = plan.seconds * (1 + 1e-9) - relaxed.bound
    left = sack.only([np.flatnonzero(reduced <= most) for reduced in relaxed.reduced])
    assert 14 < left.points < sack.points
    assert plan.seconds == pytest.approx(milp_value(left), rel=1e-9)
