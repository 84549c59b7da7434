"""Our parameter server, with malformed and incomplete requests."""

from __future__ import annotations

import socket
from contextlib import closing
from urllib.parse import urlsplit

import numpy as np
import pytest
from exchanges import exact, vectors

from mlcd.planners.functions.storages import connect
from mlcd.planners.functions.storages import vm_ps as wire
from mlcd.planners.functions.storages.local import serve
from mlcd.planners.functions.storages.storage import StorageError, to_bytes


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve("vm-ps", tmp_path_factory.mktemp("vm-ps")) as running:
        yield running


@pytest.fixture
def line(server):
    """A connection to the server, for whatever one likes to send."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=300) as found:
        yield found


def test_a_client_with_another_protocol_is_disconnected_and_others_are_served(server, line):
    line.sendall(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n")
    assert line.recv(100) == b""
    with closing(connect("vm-ps", server.url)) as storage:
        storage.put("a", b"x")
        assert storage.get("a") == b"x"


def test_a_vector_of_which_only_half_arrives_does_not_count(server, line):
    brought = vectors(2, 1_000)
    whole = to_bytes(brought[0])
    question = {"do": "push", "group": "half", "step": 0, "rank": 0, "functions": 2}
    line.sendall(wire.message(question, whole)[: -len(whole) // 2])
    line.close()
    with closing(connect("vm-ps", server.url)) as storage:
        assert storage.average("half", 0, 1, 2, brought[1], 0.05) == (0,)
        with closing(connect("vm-ps", server.url)) as again:
            assert np.array_equal(again.average("half", 0, 0, 2, brought[0], 5.0), exact(brought))


@pytest.mark.parametrize("question", [{}, {"do": "dance"}, {"do": "push"}, {"do": "get"}, {"do": "pull", "step": "x"}])
def test_a_malformed_request_is_refused_and_the_connection_stays_open(line, question):
    for _ in range(2):
        line.sendall(wire.message(question))
        answer, body = wire.receive(line.makefile("rb"))
        assert (answer["is"], body) == ("refused", b"")
        assert answer["why"]


def test_a_restarted_server_refuses_clients_of_its_earlier_start(server, line):
    line.sendall(wire.message({"do": "put", "key": "late", "life": "another"}, b"x"))
    assert wire.receive(line.makefile("rb"))[0]["is"] == "restarted"
    with closing(connect("vm-ps", server.url)) as storage:
        assert storage.get("late") is None


def test_a_rank_of_another_group_size_is_refused(server):
    with closing(connect("vm-ps", server.url)) as storage:
        storage.average("wrong", 0, 0, 2, vectors(1, 10)[0], 0.0)
        with pytest.raises(StorageError, match="rank 1 of 3 functions joined an exchange between 2"):
            storage.average("wrong", 0, 1, 3, vectors(1, 10)[0], 0.0)


def test_a_vector_that_is_sent_twice_counts_once(server):
    brought = vectors(2, 10)
    with closing(connect("vm-ps", server.url)) as one, closing(connect("vm-ps", server.url)) as other:
        assert one.average("twice", 0, 0, 2, brought[0], 0.01) == (1,)
        assert one.average("twice", 0, 0, 2, brought[0], 0.01) == (1,)
        assert np.array_equal(other.average("twice", 0, 1, 2, brought[1], 5.0), exact(brought))
        assert np.array_equal(one.average("twice", 0, 0, 2, brought[0], 5.0), exact(brought))
