"""How tables, decisions, and a planner's additional facts and tables are printed in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from mlcd.core.backend import Provenance
from mlcd.core.decision import Decision
from mlcd.core.units import format_duration, format_usd

if TYPE_CHECKING:
    from mlcd.core.additions import Additions, Cell

Columns = Sequence[tuple[str, str]]
"""Column names with their kind: 'num' is aligned right, 'mark' centred, 'wrap' may be wrapped."""
Row = Sequence[str]
JUSTIFY: dict[str, Literal["left", "right", "center"]] = {"num": "right", "mark": "center"}


def rich_table(
    columns: Columns, rows: Iterable[Row], total: Row = (), chosen: Collection[int] = (), more: int = 0
) -> RichTable:
    """A table of text. `total`: the last row; `chosen`: indices of highlighted rows; `more`: number of omitted rows."""
    table = RichTable(box=None, pad_edge=False, header_style="bold dim", show_footer=bool(total), footer_style="bold")
    for i, (name, kind) in enumerate(columns):
        justify, footer = JUSTIFY.get(kind, "left"), escape(total[i]) if total else ""
        table.add_column(escape(name.upper()), justify=justify, no_wrap=kind != "wrap", footer=footer)
    for i, cells in enumerate(rows):
        table.add_row(*map(escape, cells), style="bold green" if i in chosen else None)
    if more:
        table.add_row(f"and {more} more", style="dim")
    return table


def say_decision(
    console: Console, decision: Decision, sentence: str, provenance: Provenance = Provenance.LIVE, wraps: bool = False
) -> None:
    """Print a decision as a sentence. `wraps`: wrap it at the console's width, not at that of the terminal."""
    label = f" ({provenance})" if provenance is not Provenance.LIVE else ""
    style = "bold green" if decision.configuration is not None else "bold yellow"
    console.print(f"Decision{label}: {sentence}", style=style, markup=False, soft_wrap=not wraps)


def show_additions(console: Console, additions: Additions | None) -> None:
    """Print a line for each fact, then the tables (figures are only on pages). None: the planner adds nothing."""
    if additions is None:
        return
    for fact in additions.facts:
        hint = f"  [dim]{escape(fact.hint)}[/dim]" if fact.hint else ""
        console.print(f"{escape(fact.label)}: {escape(fact.value)}{hint}")
    kinds = {"left": "", "right": "num", "center": "mark"}
    for table in additions.tables:
        units = [column.unit for column in table.columns]
        rows = [[_words(cell, unit) for cell, unit in zip(row, units, strict=True)] for row in table.rows]
        printed = rich_table([(column.label, kinds[column.align]) for column in table.columns], rows)
        printed.title, printed.title_justify = escape(table.title), "left"
        console.print()
        console.print(printed)
    if additions.tables:
        console.print()


def _words(cell: Cell, unit: str) -> str:
    """A value with its unit: money and time as everywhere."""
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case str():
            return cell
    if unit == "usd":
        return format_usd(cell)
    return format_duration(cell) if unit == "s" else f"{cell:.4g} {unit}".rstrip()
