"""What a planner adds to a run, in a terminal: its facts and its tables. Figures are for the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Printed

from mlcd.core.units import format_duration, format_usd

if TYPE_CHECKING:
    from mlcd.reports.run_document.told import Cell, Table, Told


def show_told(console: Console, told: Told | None) -> None:
    """A line for each fact, then the tables; nothing, where the planner adds nothing."""
    if told is None:
        return
    for fact in told.facts:
        hint = f"  [dim]{escape(fact.hint)}[/dim]" if fact.hint else ""
        console.print(f"{escape(fact.label)}: {escape(fact.value)}{hint}", highlight=False)
    for table in told.tables:
        console.print()
        console.print(_printed(table))


def _printed(table: Table) -> Printed:
    made = Printed(title=escape(table.title), title_justify="left", box=None, pad_edge=False, header_style="bold dim")
    for column in table.columns:
        made.add_column(escape(column.label.upper()), justify=column.align, no_wrap=True)
    for row in table.rows:
        made.add_row(*(escape(_words(cell, c.unit)) for cell, c in zip(row, table.columns, strict=True)))
    return made


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
