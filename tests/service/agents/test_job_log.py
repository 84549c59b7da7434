"""The end of a log that a service gives from any byte on: the right lines, in few requests, and none that control."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.service.agents.answers import JobLog
from mlcd.service.agents.job_log import MOST_LETTERS, end_of_log

PIECE = 256 * 1024


@dataclass
class Written:
    """A service that has one log, and gives so much of it at once."""

    body: bytes
    piece: int = PIECE
    asked: int = 0

    def get(self, path: str, launch: int | None, process: int, after: int) -> Any:
        self.asked += 1
        found = self.body[after : after + self.piece]
        done = after + len(found) >= len(self.body)
        return {"launch": launch or 3, "text": found.decode(errors="replace"), "next": after + len(found), "done": done}

    @contextmanager
    def reading(self) -> Iterator[None]:
        yield


def end_of(service: Written, lines: int = 60) -> JobLog:
    return end_of_log(service, "demo-1", lines, None, 0)  # type: ignore[arg-type]


@given(st.lists(st.text("ab c", min_size=1, max_size=30), min_size=1), st.integers(1, 50), st.integers(1, 2_000))
def test_the_last_lines_are_given_whatever_the_length_of_a_piece(written, lines, piece):
    found = end_of(Written("".join(f"{line}\n" for line in written).encode(), piece), lines)
    assert found.text.split("\n") == written[-lines:]
    assert (found.earlier, found.done) == (len(written) > lines, True)


def test_a_log_of_a_gigabyte_takes_some_dozens_of_requests():
    service = Written(b"step 1 of many\n" * 20_000_000 + b"the end\n")
    found = end_of(service, 2)
    assert found.text == "step 1 of many\nthe end"
    assert found.earlier
    assert service.asked < 40


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"1 %\r50 %\r100 %\n", "100 %"),
        (b"windows\r\n", "windows"),
        (b"\x1b[2J\x1b]0;title\x07a\tb\n", "?[2J?]0;title?a" + " " * 2 + "b"),
        (b"", ""),
    ],
)
def test_nothing_of_it_controls_a_terminal_and_a_progress_bar_is_one_line(written, shown):
    found = end_of(Written(written))
    assert (found.text.replace(" ", ""), found.earlier) == (shown.replace(" ", ""), False)


def test_an_answer_has_an_end_also_where_a_line_has_none():
    found = end_of(Written(b"x" * 3_000_000))
    assert len(found.text) == MOST_LETTERS
    assert found.earlier
