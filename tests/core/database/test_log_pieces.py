"""Logs in pieces: any part of what was appended can be read back, in portions of any size."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.database import open_database
from mlcd.core.database.files import LogPieces
from mlcd.core.errors import LedgerError


def appended(pieces: LogPieces, bodies: list[bytes]) -> bytes:
    whole = b""
    for body in bodies:
        pieces.append("run-1-1", 0, len(whole), body)
        whole += body
    return whole


def check(pieces: LogPieces, whole: bytes, most: int) -> None:
    for after in range(len(whole) + 2):
        assert pieces.read("run-1-1", 0, after, most) == whole[after : after + most]


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=6), st.integers(1, 20), st.booleans())
def test_appended_text_can_be_read_from_any_byte(bodies, most, over):
    with closing(open_database(None)) as database:
        pieces = LogPieces(database)
        whole = appended(pieces, bodies)
        if over:
            pieces.append("run-1-1", 0, len(whole), b"")
        assert pieces.end("run-1-1", 0) == (len(whole), over)
        check(pieces, whole, most)
        assert pieces.end("run-1-1", 1) == (0, False)
        assert pieces.with_log(["run-1-1", "run-1-2"], 0) == ({"run-1-1"} if bodies or over else set())


def test_the_same_holds_on_postgresql_and_nothing_follows_the_end(postgres_url):
    with closing(open_database(postgres_url)) as database:
        pieces = LogPieces(database)
        whole = appended(pieces, [b"one\n", b"\x00two\xff", b"three"])
        pieces.append("run-1-1", 0, len(whole), b"")
        assert pieces.end("run-1-1", 0) == (len(whole), True)
        check(pieces, whole, 3)
        with pytest.raises(LedgerError):
            pieces.append("run-1-1", 0, len(whole), b"more")
