"""Tables are whole on every terminal, however narrow."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from mlcd.cli.console import WholeTableConsole, at_work

words = st.text("abc$,. 12", min_size=1, max_size=40).map(lambda text: " ".join(text.split())).filter(bool)
rows = st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(words, min_size=n, max_size=n), min_size=1, max_size=4))


def printed(width: int, *things: object) -> list[str]:
    file = io.StringIO()
    WholeTableConsole(file=file, width=width).print(*things)
    return file.getvalue().splitlines()


@given(rows=rows, width=st.integers(1, 200))
def test_no_cell_is_cut_and_no_line_ends_with_blanks_at_any_width(rows: list[list[str]], width: int):
    table = Table(box=None, pad_edge=False, show_header=False)
    for number in range(len(rows[0])):
        table.add_column(no_wrap=number % 2 == 0, justify="right" if number % 3 == 0 else "left")
    for row in rows:
        table.add_row(*row)
    lines = printed(width, table)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line == line.rstrip()
        assert line.split() == " ".join(row).split()


def test_words_are_wrapped_at_the_width_of_the_terminal():
    assert [line.strip() for line in printed(10, "one two three four")] == ["one two", "three four"]


def test_what_takes_seconds_is_told_on_a_terminal_alone():
    for terminal in (True, False):
        file = io.StringIO()
        with at_work(WholeTableConsole(file=file, width=80, force_terminal=terminal), "Looking ..."):
            pass
        assert ("Looking ..." in file.getvalue()) is terminal
