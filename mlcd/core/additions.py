"""Facts, tables and figures that a planner adds to the report of a run; pages draw them, the terminal prints them.

A planner returns them from `Planner.additions()`. Reports need not know the planner.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mlcd.core.part import Finite, Part

Cell = str | int | float | bool | None


class Fact(Part):
    """A key figure, in words."""

    label: str = Field(description="What it is.")
    value: str = Field(description="How much it is, with its unit.")
    hint: str = Field(default="", description="A few words below it.")


class Column(Part):
    """A column of a table."""

    label: str = Field(description="Its heading.")
    unit: str = Field(
        default="", description="The unit of its numbers; `usd` and `s` are written as money and as time."
    )
    align: Literal["left", "right", "center"] = Field(default="left", description="Where its cells stand.")


class Table(Part):
    """A table."""

    title: str = Field(description="Its heading.")
    columns: list[Column] = Field(description="From left to right.")
    rows: list[list[Cell]] = Field(description="From top to bottom; each with a cell for every column.")


class Axis(Part):
    """An axis of a figure."""

    label: str = Field(description="What it measures.")
    unit: str = Field(
        default="", description="The unit of its numbers; `usd` and `s` are written as money and as time."
    )
    scale: Literal["linear", "log"] = Field(default="linear", description="How its numbers are spread.")
    names: list[str] = Field(default=[], description="What stands at 1, 2, 3 ... in place of the numbers.")


class Point(Part):
    """A point of a series."""

    x: float | str = Field(description="Across: a number or, of bars, a name.")
    y: Finite = Field(description="Up; null where it is not known: a line has a gap there.")
    label: str = Field(default="", description="What a pointer at it reads.")


class Series(Part):
    """Points that belong together."""

    name: str = Field(description="What they have in common.")
    points: list[Point] = Field(description="In the order in which a line joins them.")
    look: Literal["plain", "quiet", "limit"] = Field(
        default="plain",
        description="`limit`: what is lost, or a line that should not be crossed; `quiet`: what only fills the gaps.",
    )


class LimitLine(Part):
    """A line across a figure, such as a budget."""

    label: str = Field(description="What it limits.")
    value: float = Field(description="Where it is on its axis.")
    axis: Literal["x", "y"] = Field(default="y", description="The axis that it stands on.")


class Figure(Part):
    """A small chart."""

    title: str = Field(description="Its heading.")
    kind: Literal["points", "lines", "bars", "spans"] = Field(
        description="How a series is drawn. `spans`: each piece of it is a bar along its row, a single point a mark."
    )
    x: Axis = Field(description="Across.")
    y: Axis = Field(description="Up.")
    series: list[Series] = Field(description="Each in a colour and a shape of its own.")
    limits: list[LimitLine] = Field(default=[], description="Lines that should not be crossed.")
    note: str = Field(default="", description="A sentence below it.")


class Additions(Part):
    """A planner's own additions to the report of a run. `planner`: its name, if it is of another package."""

    planner: str = Field(default="", description="The planner's name, if it is one of another package.")
    facts: list[Fact] = Field(default=[], description="Key figures.")
    tables: list[Table] = Field(default=[], description="Tables.")
    figures: list[Figure] = Field(default=[], description="Charts.")
    part: dict[str, Any] = Field(default={}, description="Anything else, for programs: whatever JSON can say.")
