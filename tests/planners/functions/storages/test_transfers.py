"""Timing of single objects: the median of puts and gets; all objects are deleted."""

from __future__ import annotations

import pytest
from in_memory import InMemory

from mlcd.core.clock import VirtualClock
from mlcd.planners.functions.storages.exchange import time_transfers


def test_timed_transfers_follow_the_known_law_of_the_storage():
    clock = VirtualClock()
    objects: dict[str, bytes] = {}
    storage = InMemory(objects, clock, latency_s=0.02, mb_per_s=50.0)
    found = time_transfers(storage, (0.001, 0.5, 2.0), 3, clock)
    assert [mb for mb, _ in found] == [0.001, 0.5, 2.0]
    assert [seconds for _, seconds in found] == pytest.approx([0.02 + mb / 50.0 for mb, _ in found])
    assert objects == {}


def test_one_slow_transfer_among_many_does_not_count():
    class Hiccup(InMemory):
        def put(self, key, value):
            super().put(key, value)
            if self.requests == 7:
                self.clock.wait(60.0)

    clock = VirtualClock()
    found = time_transfers(Hiccup({}, clock, latency_s=0.02), (1.0,), 5, clock)
    assert found[0][1] == pytest.approx(0.02)
