"""A server that ends or restarts during an exchange: no loss goes unnoticed, and a new attempt succeeds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from exchanges import exact, exchange_all, vectors

from mlcd.planners.functions.storages import Exchange, ExchangeFailed, connect
from mlcd.planners.functions.storages.local import available, serve

pytestmark = pytest.mark.live

FORGET, KEEP = ("elasticache", "vm-ps"), ("s3", "dynamodb")


def running(name, tmp_path):
    if (why := available(name)) is not None:
        pytest.skip(why)
    return serve(name, tmp_path)


class Told:
    """A storage that tells when its first put, or its first average, is on its way to the server."""

    def __init__(self, storage):
        self.storage, self.asked = storage, threading.Event()

    @property
    def requests(self):
        return self.storage.requests

    def get(self, key):
        self.asked.set()
        return self.storage.get(key)

    def put(self, key, value):
        self.storage.put(key, value)

    def delete(self, keys):
        self.storage.delete(keys)


def begun(server, brought, pool):
    """Rank 1 has put its vector and waits for the mean."""
    storage = connect(server.name, server.url)
    storage.put("before", b"it knows the server")
    if server.name == "vm-ps":
        assert storage.average("first", 0, 1, 2, brought[1], 0.0) == (0,)
        return storage, pool.submit(Exchange(storage, "first", 1, 2, 300.0).average, 0, brought[1])
    told = Told(storage)
    waiting = pool.submit(Exchange(told, "first", 1, 2, 300.0).average, 0, brought[1])
    assert told.asked.wait(300)
    return storage, waiting


@pytest.mark.parametrize("name", FORGET)
def test_a_restart_that_loses_data_breaks_the_exchange_and_the_next_attempt_succeeds(name, tmp_path):
    brought = vectors(2, 100)
    with running(name, tmp_path) as server, ThreadPoolExecutor() as pool:
        storage, waiting = begun(server, brought, pool)
        with closing(storage):
            server.stop()
            server.start()
            with pytest.raises(ExchangeFailed, match=f"{name} at .* has restarted, and lost its data"):
                waiting.result(300)
        for left in exchange_all(lambda: connect(name, server.url), "second", brought):
            assert np.array_equal(left.means[0], exact(brought))


@pytest.mark.parametrize("name", KEEP)
def test_a_restart_that_keeps_data_is_waited_for(name, tmp_path):
    brought = vectors(2, 100)
    with running(name, tmp_path) as server, ThreadPoolExecutor() as pool:
        storage, waiting = begun(server, brought, pool)
        with closing(storage):
            server.stop()
            server.start()
            with closing(connect(name, server.url)) as other:
                assert np.array_equal(Exchange(other, "first", 0, 2).average(0, brought[0]), exact(brought))
            assert np.array_equal(waiting.result(300), exact(brought))


@pytest.mark.parametrize("name", FORGET)
def test_a_server_that_ends_breaks_the_exchange_with_a_one_line_error(name, tmp_path):
    with running(name, tmp_path) as server, closing(connect(name, server.url, retry_s=0.2)) as storage:
        storage.put("a", b"x")
        server.stop()
        with pytest.raises(ExchangeFailed, match=f"{name} at .* has not answered for 0 s") as caught:
            Exchange(storage, "g", 1, 2).average(0, vectors(1, 10)[0])
        assert "\n" not in str(caught.value)
