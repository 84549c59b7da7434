"""A table without lines."""

from __future__ import annotations

from collections.abc import Sequence
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
