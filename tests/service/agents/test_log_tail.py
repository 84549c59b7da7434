"""The end of a job's log for an assistant: the lines that it asked for, and none that control a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.service.agents.answers import JobLog
from mlcd.service.agents.log_tail import MOST_LETTERS, log_tail


@dataclass
class Written:
    """A service that gives the last lines of one log."""

    lines: list[str]
    start: int = 0

    def get(self, path: str, **asked: Any) -> Any:
        assert (path, asked) == ("/runs/demo-1/logs/lines", {"launch": None, "process": 0})
        return {"launch": 3, "lines": [{"text": each} for each in self.lines], "start": self.start, "done": True}

    @contextmanager
    def reading(self) -> Iterator[None]:
        yield


def end_of(service: Written, lines: int = 60) -> JobLog:
    return log_tail(service, "demo-1", lines, None, 0)  # type: ignore[arg-type]


@given(st.lists(st.text("ab c", min_size=1, max_size=30), min_size=1), st.integers(1, 50), st.integers(0, 3))
def test_the_last_lines_are_given_and_whether_there_are_earlier_ones(written, lines, start):
    found = end_of(Written(written, start), lines)
    assert found.text.split("\n") == written[-lines:]
    assert (found.launch, found.earlier, found.done) == (3, len(written) > lines or start > 0, True)


@pytest.mark.parametrize(
    ("written", "shown"),
    [("\x1b[31;1mred\x1b[0m", "red"), ("\x1b]0;title\x07a\tb", "?]0;title?a     b"), ("", "")],
)
def test_nothing_of_it_controls_a_terminal(written, shown):
    assert end_of(Written([written])).text.replace(" ", "") == shown.replace(" ", "")


def test_an_answer_has_an_end_also_where_lines_are_long():
    found = end_of(Written(["x" * 4_000] * 60))
    assert len(found.text) == MOST_LETTERS
    assert found.earlier
