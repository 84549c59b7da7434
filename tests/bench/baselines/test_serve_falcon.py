"""Falcon's parts, each against an oracle: key operators, resource curves, trees, the walk of Algorithm 1."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.history import History
from mlcd.core.strategy import Probe
from mlcd.planners.serve.known_models import Kind
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import KnobTable, knobs_of
from mlcd.planners.serve.space import serving_space
from mlcd.testing.services import random_world
from mlcd.testing.serving import serve
from mlcd_bench.baselines.serve import Falcon
from mlcd_bench.baselines.serve.falcon import key_weights
from mlcd_bench.baselines.serve.falcon_curves import Shape, best_setting, classify, curves, kept_knobs, surface
from mlcd_bench.baselines.serve.falcon_trees import HEIGHT, Region, build_tree, from_json, split, to_json, two_means
from mlcd_bench.baselines.serve.falcon_walk import Forest, follow
from mlcd_bench.baselines.serve.features import points

GRID = np.linspace(0, 1, 5)
U, W = np.meshgrid(GRID, GRID, indexing="ij")


def profile(**operators: tuple[float, float]) -> Profile:
    return Profile(8, tuple(Operator(name, 1, s, mb) for name, (s, mb) in operators.items()))


def small_space():
    table = KnobTable({"precision": ("bf16", "fp32"), "batch": (1, 2, 4, 8, 16), "cores": (1, 2, 4)}, {"cores": 0.1})
    return serving_space(table)


def values(space, of) -> np.ndarray:
    return np.array([of(**dict(knobs_of(c))) for c in space.configurations], dtype=float)


# Key operators


def test_an_operator_is_key_by_its_time_or_by_its_memory():
    facts = ModelFacts("m", profiles=(profile(conv=(0.90, 10.0), relu=(0.06, 0.0), pad=(0.03, 90.0), add=(0.01, 0.0)),))
    assert set(key_weights(facts.profiles)) == {"conv", "relu", "pad"}


def test_key_operators_come_in_descending_order_of_both_shares_together():
    facts = ModelFacts("m", profiles=(profile(a=(0.5, 10.0), b=(0.3, 80.0), c=(0.2, 10.0)),))
    assert list(key_weights(facts.profiles)) == ["b", "a", "c"]
    assert key_weights(facts.profiles)["b"] == pytest.approx((0.3 + 0.8) / 2)


def test_profiled_passes_have_equal_weight():
    facts = ModelFacts("m", profiles=(profile(a=(0.9, 0.0), b=(0.1, 0.0)), profile(a=(100.0, 0.0), b=(900.0, 0.0))))
    assert key_weights(facts.profiles)["a"] == pytest.approx(key_weights(facts.profiles)["b"])


def test_a_model_without_a_profile_has_no_key_operators():
    assert key_weights(ModelFacts("m").profiles) == {}


# Resource curves


@pytest.mark.parametrize(
    ("z", "shape", "knobs"),
    [
        (0.2 + 0.7 * U, Shape.SLOPE, ("a",)),
        (0.9 - 0.7 * W + 0.02 * U, Shape.SLOPE, ("b",)),
        (0.1 + 0.8 * ((U - 0.6) ** 2 + (W - 0.4) ** 2), Shape.CONVEX, ("a", "b")),
        (1 - 0.8 * ((U - 0.7) ** 2 + (W - 0.7) ** 2), Shape.CONCAVE, ("a", "b")),
        (0.5 + 0.02 * U - 0.02 * W, Shape.PLANE, ("a", "b")),
    ],
)
def test_each_of_the_four_shapes_is_recognised(z, shape, knobs):
    found = classify(z, "a", "b")
    assert (found.shape, found.knobs) == (shape, knobs)


def test_convex_and_concave_curves_split_two_levels_a_slope_one_and_a_plane_none():
    levels = {Shape.SLOPE: 1, Shape.CONVEX: 2, Shape.CONCAVE: 2, Shape.PLANE: 0}
    assert {shape: replace(classify(U, "a", "b"), shape=shape).levels for shape in Shape} == levels


def test_a_surface_is_the_mean_over_everything_else():
    pairs = list(product((1, 2), ("x", "y"), (0, 1)))
    v = np.array([10 * a + (5 if b == "y" else 0) + c for a, b, c in pairs], dtype=float)
    z = surface(v, [a for a, _, _ in pairs], [b for _, b, _ in pairs])
    assert z.tolist() == [[10.5, 15.5], [20.5, 25.5]]


def test_a_knob_without_influence_is_pruned_and_the_others_are_kept():
    space = small_space()
    v = values(space, lambda precision, batch, cores: np.log2(batch) + 3 * (precision == "bf16"))
    told = points(space).settings
    assert set(kept_knobs(v, told)) == {"precision", "batch"}


def test_a_knob_of_little_influence_is_pruned_at_the_cut_off():
    """Main effects with variances 4 x 2, 0.25 and 0.1: the first alone is 8 / 8.35, more than 85 % of them."""
    space = small_space()
    v = values(space, lambda precision, batch, cores: 2 * np.log2(batch) + (precision == "bf16") + 0.2 * cores)
    assert kept_knobs(v, points(space).settings) == ("batch",)


def test_where_nothing_matters_nothing_is_pruned():
    space = small_space()
    assert kept_knobs(np.ones(len(space)), points(space).settings) == ("precision", "batch", "cores")


def test_a_pruned_knob_gets_its_best_value_on_average():
    assert best_setting(np.array([1.0, 5.0, 2.0, 3.0]), ("a", "b", "a", "b")) == "b"


def test_curves_that_explain_most_come_first():
    space = small_space()
    v = values(space, lambda precision, batch, cores: 5 * np.log2(batch) + 3 * (precision == "bf16") + 0.1 * cores)
    assert curves(v, points(space).settings)[0].knobs[-1] == "batch"


# Trees


def regions(region: Region):
    yield region
    if region.left is not None and region.right is not None:
        yield from regions(region.left)
        yield from regions(region.right)


@given(st.lists(st.floats(0, 1), min_size=30, max_size=30))
def test_the_left_child_is_the_better_one_and_no_tree_is_higher_than_eight(v):
    tree = build_tree("op", np.array(v), small_space())
    assert tree.root.height <= HEIGHT
    for region in regions(tree.root):
        if region.left is not None and region.right is not None:
            assert region.left.value > region.right.value
            assert region.left.value > region.value > region.right.value


def test_the_value_of_a_region_is_the_mean_of_what_lies_in_it():
    space = small_space()
    v = values(space, lambda precision, batch, cores: np.log2(batch) * (precision == "bf16") * cores)
    tree = build_tree("op", v, space)
    forest = Forest.of((tree,), space, [], np.zeros(0))
    x, inside = points(space).x, forest.views[0].allowed
    good = tree.root.boundary.is_good(x)
    assert tree.root.value == pytest.approx(v[inside].mean())
    assert tree.root.left.value == pytest.approx(v[inside & good].mean())
    assert tree.root.right.value == pytest.approx(v[inside & ~good].mean())


@given(st.integers(0, 10_000))
def test_two_means_are_those_of_scikit_learn(seed):
    rows = np.random.default_rng(seed).random((40, 3))
    mine = two_means(rows, rows[0], rows[1])
    from sklearn.cluster import KMeans  # slow to import

    theirs = KMeans(2, init=rows[:2], n_init=1, tol=0).fit(rows).labels_ == 1
    assert (mine == theirs).all()


def test_a_boundary_separates_separable_points():
    x = np.column_stack([np.linspace(0, 1, 20), np.zeros(20)])
    v = (x[:, 0] > 0.5).astype(float)
    boundary = split(x, v, [0])
    assert boundary is not None
    assert (boundary.is_good(x) == (v > 0)).all()


def test_a_region_of_equals_is_not_split():
    assert split(np.random.default_rng(0).random((20, 2)), np.ones(20), [0, 1]) is None


@pytest.mark.parametrize("seed", range(3))
def test_trees_from_a_file_search_as_those_that_were_written(seed):
    world = random_world(Kind.DEVICE, seed)
    job = world.job(caps=(world.latency(0.7),), trials=12)
    fresh = Falcon(world.seen, seed)
    trees = fresh.trees(job, world.space)
    text = to_json(trees)
    stored = Falcon(world.seen, seed, stored=from_json(text))
    assert from_json(text) == trees
    assert serve(fresh, world, job).tried == serve(stored, world, job).tried


def test_invalid_tree_text_is_refused():
    with pytest.raises(ValueError, match="valid"):
        from_json('[{"operator": 3}]')


# The walk of Algorithm 1


def walked(trial_values, tree_count=2):
    """The state of the search after trials with these values, in trees without pruned knobs."""
    batches = tuple(2**i for i in range(9))
    space = serving_space(KnobTable({"batch": batches, "cores": (1, 2, 4, 8), "precision": ("bf16", "fp32")}))
    v = values(space, lambda batch, cores, precision: np.log2(batch) + 2 * np.log2(cores) + 5 * (precision == "bf16"))
    trees = tuple(build_tree(f"op-{n}", v if n == 0 else v[::-1].copy(), space) for n in range(tree_count))
    assert all(tree.fixed == () for tree in trees)
    rows = list(range(len(trial_values)))
    return follow(Forest.of(trees, space, rows, np.array(trial_values)), np.ones(len(space), dtype=bool))


def test_after_the_first_trial_the_search_goes_left():
    place = walked([1.0])
    assert (place.tree, place.path) == (0, "L")


def test_while_results_improve_the_search_goes_further_left():
    assert walked([1.0, 2.0]).path == "LL"
    assert walked([1.0, 2.0, 2.0]).path == "LLL"


def test_when_results_worsen_the_search_leaves_for_another_region_or_tree():
    place = walked([2.0, 1.0])
    assert (place.tree, place.path) in {(0, "R"), (1, "L")}


def test_a_trial_without_value_does_not_keep_the_search_in_its_region():
    assert not walked([0.0, 0.0]).path.startswith("LL")


def test_below_a_leaf_new_data_make_new_regions():
    place = walked([1.0 + j for j in range(12)], tree_count=1)
    assert set(place.path) == {"L"}
    assert place.deeper > 0


def test_the_first_trial_is_random_and_the_next_reuses_the_best_of_the_seen_models():
    world = random_world(Kind.DEVICE, 2)
    job = world.job(trials=2)
    firsts = {serve(Falcon(world.seen, seed), world, world.job(trials=1)).tried[0] for seed in range(8)}
    assert len(firsts) > 1
    second = serve(Falcon(world.seen, 0), world, job).tried[1]
    trees = Falcon(world.seen).trees(job, world.space)
    assert knobs_of(second) == trees[0].root.left.best


def test_the_trees_are_of_the_models_key_operators_in_their_order():
    world = random_world(Kind.DEVICE, 3)
    job = world.job()
    seen = {name for model in world.seen.models for name in key_weights(model.facts.profiles)}
    expected = [name for name in key_weights(world.unseen.facts.profiles) if name in seen]
    assert [tree.operator for tree in Falcon(world.seen).trees(job, world.space)] == (expected or ["all operators"])


@pytest.mark.parametrize("kind", [Kind.INSTANCES, Kind.LANGUAGE])
def test_without_operators_there_is_one_tree_for_all_seen_models(kind):
    world = random_world(kind, 1)
    trees = Falcon(world.seen).trees(world.job(), world.space)
    assert [tree.operator for tree in trees] == ["all operators"]


def test_with_nothing_seen_it_still_searches():
    world = random_world(Kind.DEVICE, 4)
    step = Falcon(replace(world.seen, models=())).next_step(world.job(), world.space, History())
    assert isinstance(step, Probe)
