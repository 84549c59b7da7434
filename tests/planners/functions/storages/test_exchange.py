"""Bulk-synchronous averaging: its result, its transfers, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from exchanges import exact, exchange_all, vectors
from hypothesis import given
from hypothesis import strategies as st
from in_memory import InMemory

from mlcd.core.clock import VirtualClock
from mlcd.planners.functions.storages import Exchange, ExchangeFailed, StorageGone
from mlcd.planners.functions.storages.exchange import GROWTH, MAX_POLL_S, MIN_POLL_S, STALE_BYTES, STALE_KEYS
from mlcd.planners.functions.storages.storage import StorageError, to_bytes

floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(floats, min_size=3, max_size=3), min_size=n, max_size=n)))
def test_all_functions_get_the_exact_mean_bit_by_bit(numbers):
    brought = [np.array(each, np.float32) for each in numbers]
    objects: dict[str, bytes] = {}
    left = exchange_all(lambda: InMemory(objects), "g", brought)
    assert np.array_equal(left[0].means[0], exact(brought))
    assert len({each.means[0].tobytes() for each in left}) == 1


@pytest.mark.parametrize("functions", [1, 2, 3, 5])
def test_a_step_takes_3n_minus_2_transfers_and_misses_are_requests_only(functions):
    objects: dict[str, bytes] = {}
    steps = 4
    left = exchange_all(lambda: InMemory(objects), "g", vectors(functions, 10), steps)
    assert sum(each.transfers for each in left) == steps * (3 * functions - 2)
    assert [each.transfers for each in left] == [steps * functions, *[2 * steps] * (functions - 1)]
    assert all(each.requests >= each.transfers for each in left)


def test_every_step_has_its_own_mean():
    brought = vectors(3, 10)
    objects: dict[str, bytes] = {}
    for left in exchange_all(lambda: InMemory(objects), "g", brought, steps=5):
        for step, found in enumerate(left.means):
            assert np.array_equal(found, exact([each * np.float32(step + 1) for each in brought]))


def alone(rank: int, functions: int, objects: dict[str, bytes], timeout_s: float = 30.0) -> tuple[Exchange, InMemory]:
    """A function whose time passes only while it waits."""
    clock = VirtualClock()
    storage = InMemory(objects, clock)
    return Exchange(storage, "g", rank, functions, timeout_s, clock), storage


def test_the_error_names_the_missing_ranks():
    objects = {f"g/7/{rank}": to_bytes(vectors(1, 4)[0]) for rank in (1, 3)}
    exchange, _ = alone(0, 5, objects)
    with pytest.raises(ExchangeFailed, match=r"5 functions in g, step 7: ranks 2, 4 did not come within 30 s"):
        exchange.average(7, vectors(1, 4)[0])
    assert exchange.clock.elapsed_s() == pytest.approx(30.0)


def test_the_error_of_a_function_without_a_mean_says_that_it_waited_for_rank_0():
    exchange, _ = alone(2, 3, {})
    with pytest.raises(ExchangeFailed, match=r"rank 2 has no mean after 30 s: rank 0 did not come, or still waits"):
        exchange.average(0, vectors(1, 4)[0])


@given(st.floats(0.0, 20.0))
def test_polling_adds_at_most_a_third_of_the_time(comes_s):
    class Late(InMemory):
        def get(self, key):
            if self.clock.elapsed_s() >= comes_s:
                self.objects[key] = to_bytes(vectors(1, 4)[0])
            return super().get(key)

    clock = VirtualClock()
    storage = Late({}, clock)
    Exchange(storage, "g", 1, 2, 30.0, clock).average(0, vectors(1, 4)[0])
    late_s = clock.elapsed_s() - comes_s
    assert late_s <= min(MAX_POLL_S, max(MIN_POLL_S, GROWTH * comes_s)) + 1e-9
    assert storage.requests < 20 + comes_s / MAX_POLL_S


def test_objects_of_earlier_steps_are_deleted_and_the_rest_by_clear():
    objects: dict[str, bytes] = {}
    most = 0
    big = np.ones(STALE_BYTES // 40, np.float32)
    exchange, storage = alone(0, 2, objects)
    for step in range(60):
        objects[f"g/{step}/1"] = to_bytes(big)
        exchange.average(step, big)
        most = max(most, len(objects))
    assert most * big.nbytes <= STALE_BYTES + 4 * big.nbytes
    assert len(objects) <= STALE_KEYS
    storage.clear("g/")
    assert objects == {}


def test_late_vectors_of_an_older_attempt_never_reach_a_newer_one():
    objects: dict[str, bytes] = {}
    old, new = vectors(2, 10, seed=1), vectors(2, 10, seed=2)
    objects["attempt-1/0/1"] = to_bytes(old[1])
    for left in exchange_all(lambda: InMemory(objects), "attempt-2", new):
        assert np.array_equal(left.means[0], exact(new))


def test_a_vector_that_is_put_twice_counts_once():
    brought = vectors(3, 10)
    objects = {"g/0/1": to_bytes(brought[1]), "g/0/2": to_bytes(brought[2])}
    InMemory(objects).put("g/0/1", to_bytes(brought[1]))
    exchange, _ = alone(0, 3, objects)
    assert np.array_equal(exchange.average(0, brought[0]), exact(brought))


def test_vectors_of_different_lengths_are_refused():
    exchange, _ = alone(0, 2, {"g/0/1": to_bytes(vectors(1, 3)[0])})
    with pytest.raises(ExchangeFailed, match="rank 1 brought 3 numbers, rank 0 has 4"):
        exchange.average(0, vectors(1, 4)[0])


@pytest.mark.parametrize(("error", "seen"), [(StorageGone, ExchangeFailed), (StorageError, StorageError)])
def test_a_lost_storage_breaks_the_exchange_and_a_refusal_is_raised_as_it_is(error, seen):
    class Ill(InMemory):
        def put(self, key, value):
            raise error("redis has restarted")

    with pytest.raises(seen, match="redis has restarted") as caught:
        Exchange(Ill({}), "g", 1, 2).average(0, vectors(1, 4)[0])
    assert type(caught.value) is seen
    assert "\n" not in str(caught.value)
