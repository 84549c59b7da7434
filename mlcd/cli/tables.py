"""What the benchmark commands share: tables without lines, and lists of names with commas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(left: Sequence[str], right: Sequence[str]) -> Table:
    """A table without lines: words to the left, numbers to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in left:
        table.add_column(column, no_wrap=True)
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def several(what: str, written: str, known: Collection[str]) -> list[str]:
    """Names with commas, each of them known; or 'all'."""
    from mlcd.core.errors import UnknownName

    names = list(known) if written == "all" else [name.strip() for name in written.split(",")]
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)
    return names
