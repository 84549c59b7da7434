"""Key operators by Falcon's rule, and the median pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.serve.model_facts import Operator, Profile
from mlcd.planners.serve.operators.onnx_profile import added, key_operators, parts, typical

amounts = st.floats(0, 1e3, allow_nan=False)
profiles = st.lists(st.tuples(amounts, amounts), max_size=12).map(
    lambda rows: Profile(8, tuple(Operator(f"op{i}", 1, time, memory) for i, (time, memory) in enumerate(rows)))
)


def test_time_or_memory_alone_makes_an_operator_key() -> None:
    profile = Profile(8, (Operator("Conv", 5, 0.90, 40), Operator("Relu", 5, 0.04, 59), Operator("Add", 1, 0.06, 1)))
    assert key_operators(profile, 0.05) == ("Conv", "Relu", "Add")
    assert key_operators(profile, 0.10) == ("Conv", "Relu")
    assert key_operators(profile, 0.95) == ()


def test_an_operator_of_exactly_the_threshold_is_key() -> None:
    assert key_operators(Profile(1, (Operator("a", 1, 0.5), Operator("b", 1, 0.5))), 0.5) == ("a", "b")


@given(profiles, st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_a_smaller_threshold_never_loses_a_key_operator(profile: Profile, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert set(key_operators(profile, high)) <= set(key_operators(profile, low))


@given(profiles)
def test_key_operators_come_by_the_mean_of_their_shares(profile: Profile) -> None:
    weight = {part.operator.name: part.time_share + part.memory_share for part in parts(profile)}
    found = [weight[name] for name in key_operators(profile)]
    assert found == sorted(found, reverse=True)


def test_an_interruption_of_one_pass_changes_nothing() -> None:
    calm = {"Conv": Operator("Conv", 3, 0.010, 1.0), "Relu": Operator("Relu", 2, 0.001, 1.0)}
    hit = {**calm, "Relu": Operator("Relu", 2, 9.0, 1.0)}
    assert typical(8, [calm, hit, calm]) == typical(8, [calm, calm, calm])


def test_calls_of_one_kind_are_added_up() -> None:
    twice = added(added({}, Operator("Conv", 1, 0.5, 2.0)), Operator("Conv", 2, 0.25, 1.0))
    assert twice == {"Conv": Operator("Conv", 3, 0.75, 3.0)}
