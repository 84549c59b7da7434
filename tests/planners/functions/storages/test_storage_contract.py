"""The contract of every storage, tested with real servers, each started once on a free port of this machine."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pytest
from exchanges import exact, exchange_all, vectors

from mlcd.core.clock import WallClock
from mlcd.core.errors import UserError
from mlcd.planners.functions.storages import Averaging, Exchange, ExchangeFailed, connect
from mlcd.planners.functions.storages.exchange import time_transfers
from mlcd.planners.functions.storages.local import available, reachable, serve
from mlcd.planners.functions.workload import STORAGES

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", params=STORAGES)
def server(request, tmp_path_factory):
    if (why := available(request.param)) is not None:
        pytest.skip(why)
    with serve(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def storage(server):
    with closing(connect(server.name, server.url)) as found:
        yield found


@pytest.fixture
def prefix(storage):
    """Keys of this test alone, all gone at its end."""
    name = f"test-{uuid.uuid4().hex}/"
    yield name
    storage.clear(name)


class TestEveryStorage:
    def test_gets_what_was_put_and_nothing_else(self, storage, prefix):
        assert storage.get(f"{prefix}a") is None
        storage.put(f"{prefix}a", b"one")
        storage.put(f"{prefix}a/b/c", bytes(range(256)))
        assert storage.get(f"{prefix}a") == b"one"
        assert storage.get(f"{prefix}a/b/c") == bytes(range(256))
        assert storage.get(f"{prefix}a/b") is None

    def test_keeps_the_last_of_two_values(self, storage, prefix):
        storage.put(f"{prefix}a", b"one")
        storage.put(f"{prefix}a", b"two")
        assert storage.get(f"{prefix}a") == b"two"

    def test_keeps_a_model_of_300_kb(self, storage, prefix):
        value = np.random.default_rng(0).bytes(300_000)
        storage.put(f"{prefix}model", value)
        assert storage.get(f"{prefix}model") == value

    def test_keeps_half_a_megabyte_or_says_how_much_too_large_it_is(self, server, storage, prefix):
        if server.name == "dynamodb":
            with pytest.raises(UserError, match="488 KB does not fit into an item of 400 KB: choose another storage"):
                storage.put(f"{prefix}model", bytes(500_000))
        else:
            storage.put(f"{prefix}model", bytes(500_000))
            assert storage.get(f"{prefix}model") == bytes(500_000)

    def test_one_client_gets_what_another_put(self, server, storage, prefix):
        with closing(connect(server.name, server.url)) as other:
            other.put(f"{prefix}a", b"from another")
        assert storage.get(f"{prefix}a") == b"from another"

    def test_deletes_existing_keys_and_ignores_missing_ones(self, storage, prefix):
        keys = [f"{prefix}{i}" for i in range(30)]
        for key in keys[::2]:
            storage.put(key, b"x")
        storage.delete(keys)
        storage.delete([])
        assert [key for key in keys if storage.get(key) is not None] == []

    def test_clear_deletes_only_keys_with_the_prefix(self, storage, prefix):
        gone, stays = [f"{prefix}a*b/{i}" for i in range(3)], [f"{prefix}axb/0", f"{prefix}a"]
        for key in (*gone, *stays):
            storage.put(key, b"x")
        storage.clear(f"{prefix}a*b/")
        assert [storage.get(key) for key in gone] == [None] * 3
        assert [storage.get(key) for key in stays] == [b"x"] * 2

    def test_clear_refuses_an_empty_prefix(self, storage):
        with pytest.raises(ValueError, match="an empty prefix"):
            storage.clear("")

    def test_counts_every_request(self, storage, prefix):
        before = storage.requests
        storage.put(f"{prefix}a", b"x")
        storage.get(f"{prefix}a")
        storage.get(f"{prefix}b")
        assert storage.requests == before + 3

    @pytest.mark.parametrize("functions", [1, 2, 3, 5])
    def test_functions_can_exchange_vectors(self, server, storage, prefix, functions):
        brought = vectors(functions, 1_000)
        left = exchange_all(lambda: connect(server.name, server.url), f"{prefix}exchange", brought, steps=2)
        for each in left:
            for step, found in enumerate(each.means):
                assert np.array_equal(found, exact([vector * np.float32(step + 1) for vector in brought]))
        by_server = 2 * functions if functions > 1 else 0
        expected = by_server if isinstance(storage, Averaging) else 3 * functions - 2
        assert sum(each.transfers for each in left) == 2 * expected

    def test_the_error_names_the_missing_ranks(self, storage, prefix):
        with pytest.raises(ExchangeFailed, match=r"ranks 1, 2 did not come within 0\.05 s"):
            Exchange(storage, f"{prefix}lonely", 0, 3, timeout_s=0.05).average(0, vectors(1, 10)[0])

    def test_timing_transfers_leaves_nothing(self, storage):
        found = time_transfers(storage, (0.001, 0.2), 2, WallClock(datetime.now(UTC)))
        assert [mb for mb, _ in found] == [0.001, 0.2]
        assert all(0 < seconds < 5 for _, seconds in found)

    def test_is_reachable(self, server):
        reachable(server.name, server.url)
