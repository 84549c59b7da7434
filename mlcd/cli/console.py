"""Consoles that never cut tables: on a narrow terminal, the terminal itself wraps the lines.

rich would shrink a table to the terminal's width and cut amounts and names with dots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.table import Table

WIDE = 10_000


class WholeTableConsole(Console):
    """Wraps text at its width, and prints tables in full."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich's, with whole tables."""
        if any(isinstance(thing, Table) for thing in objects):
            options.setdefault("crop", False)
        super().print(*(_FullWidth(thing) if isinstance(thing, Table) else thing for thing in objects), **options)


@contextmanager
def at_work(console: Console, words: str) -> Iterator[None]:
    """Show these words while something takes some seconds; only in a terminal."""
    with console.status(words) if console.is_terminal else nullcontext():
        yield


@dataclass
class _FullWidth:
    """A table in full width, without trailing blanks, which a terminal would wrap as well."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for line in console.render_lines(self.table, options.update_width(WIDE), pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(), last.style, last.control))
            yield from line
            yield Segment.line()


def plain_table(left: Sequence[str], right: Sequence[str], **more: Any) -> Table:
    """A table without lines: columns aligned left, then columns aligned right."""
    table = Table(box=None, pad_edge=False, header_style="bold dim", **more)
    for column in left:
        table.add_column(column, no_wrap=True)
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    return table
