"""A server and its load generator use different cores if there are enough."""

from __future__ import annotations

import os
import threading

import pytest

from mlcd.clouds.servers.settings import other_cores, server_cores
from mlcd.clouds.serving.live import pinned_to
from mlcd.core.errors import UserError

HERE = os.sched_getaffinity(0)


@pytest.mark.parametrize("threads", range(1, len(HERE) + 1))
def test_a_server_has_its_cores_and_its_load_has_the_others(threads):
    server, load = server_cores(threads), other_cores(threads)
    assert len(server) == threads
    assert load == HERE - server if threads < len(HERE) else load == HERE


def test_more_threads_than_cores_are_a_mistake():
    with pytest.raises(UserError, match=f"knob threads = {len(HERE) + 1}: there are {len(HERE)} cores here"):
        server_cores(len(HERE) + 1)


def test_only_the_thread_of_the_load_is_moved():
    one = {min(HERE)}
    moved = []
    make = pinned_to(one, lambda: moved.append(os.sched_getaffinity(0)))  # type: ignore[arg-type, func-returns-value]
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert moved == [one]
    assert os.sched_getaffinity(0) == HERE
