"""The parameter server's state: every vector counts once, however often it is sent; and its memory is bounded."""

from __future__ import annotations

import random

import numpy as np
import pytest
from exchanges import exact, vectors
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.functions.storages.parameter_server import IDLE_S, Refused, Rounds, StepOver
from mlcd.planners.functions.storages.storage import from_bytes, to_bytes

LOTS = 10**9


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


@given(st.integers(1, 6), st.randoms(use_true_random=False), st.integers(0, 10))
def test_each_vector_counts_once_in_any_order_and_with_repetitions(functions, chance, again):
    brought = vectors(functions, 20)
    ranks = [*range(functions), *(chance.randrange(functions) for _ in range(again))]
    chance.shuffle(ranks)
    rounds = Rounds(LOTS)
    for rank in ranks:
        found = rounds.push("g", 0, rank, functions, to_bytes(brought[rank]))
    assert np.array_equal(from_bytes(found.mean), exact(brought))
    assert found.missing == ()


def test_the_first_vector_stays_when_another_comes_for_the_same_rank():
    brought = vectors(2, 5)
    rounds = Rounds(LOTS)
    rounds.push("g", 0, 0, 2, to_bytes(brought[0]))
    assert rounds.push("g", 0, 0, 2, to_bytes(brought[1])).missing == (1,)
    found = rounds.push("g", 0, 1, 2, to_bytes(brought[1]))
    assert np.array_equal(from_bytes(found.mean), exact(brought))


def test_an_older_attempt_never_reaches_a_newer_one():
    rounds = Rounds(LOTS)
    old, new = vectors(2, 5, seed=1), vectors(2, 5, seed=2)
    rounds.push("attempt-1", 3, 1, 2, to_bytes(old[1]))
    assert rounds.push("attempt-2", 3, 0, 2, to_bytes(new[0])).missing == (1,)


def test_a_late_copy_for_a_completed_step_starts_no_new_round():
    rounds = Rounds(LOTS)
    for step in range(2):
        for rank in range(2):
            rounds.push("g", step, rank, 2, to_bytes(vectors(1, 5)[0]))
    held = rounds.held
    with pytest.raises(StepOver):
        rounds.push("g", 0, 1, 2, to_bytes(vectors(1, 5)[0]))
    with pytest.raises(StepOver):
        rounds.find("g", 0)
    assert rounds.held == held == 5 * 4


@given(st.integers(0, 2**32))
def test_the_memory_in_use_is_counted_right_and_bounded(seed):
    chance = random.Random(seed)
    hands = Hands()
    rounds = Rounds(2_000, hands)
    for _ in range(300):
        hands.at_s += chance.random() * 20
        name, step = f"run-{chance.randrange(5)}/a", chance.randrange(4)
        try:
            match chance.randrange(4):
                case 0 | 1:
                    rounds.push(name, step, chance.randrange(3), 3, bytes(4 * 20))
                case 2:
                    rounds.put(f"blob-{chance.randrange(9)}", bytes(chance.randrange(400)))
                case 3:
                    rounds.clear(chance.choice(("blob-1", f"{name}/", "run-2/")))
        except (StepOver, Refused):
            pass
        groups = (each.bytes for group in rounds._groups.values() for each in group.rounds.values())
        assert rounds.held == sum(groups) + sum(map(len, rounds.blobs.values())) <= 2_000


def test_idle_groups_are_evicted_and_active_ones_are_not():
    hands = Hands()
    rounds = Rounds(1_000, hands)
    rounds.push("idle", 0, 0, 2, bytes(800))
    hands.at_s = IDLE_S / 2
    with pytest.raises(Refused, match="start it with a larger --memory-mb"):
        rounds.push("busy", 0, 0, 2, bytes(800))
    hands.at_s = IDLE_S
    rounds.push("busy", 0, 0, 2, bytes(800))
    with pytest.raises(StepOver):
        rounds.find("idle", 0)


@pytest.mark.parametrize(
    ("rank", "functions", "size", "why"),
    [(0, 3, 8, "joined an exchange between 2"), (2, 2, 8, "rank 2 of 2"), (1, 2, 12, "12 bytes, others 8")],
)
def test_a_rank_outside_the_group_is_refused(rank, functions, size, why):
    rounds = Rounds(LOTS)
    rounds.push("g", 0, 0, 2, bytes(8))
    with pytest.raises(Refused, match=why):
        rounds.push("g", 0, rank, functions, bytes(size))
