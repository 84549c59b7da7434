"""The tables of a run, as the API answers them."""

from __future__ import annotations

from pydantic import Field

from mlcd.service.web.answers import Answer


class RunTableColumn(Answer):
    """A column of a run's table."""

    name: str = Field(description="Its heading.")
    number: bool = Field(description="Whether its cells are numbers.")


class RunTable(Answer):
    """A table in words."""

    title: str = Field(description="Its heading.")
    note: str = Field(description="A sentence below the heading.")
    columns: list[RunTableColumn] = Field(description="From left to right.")
    rows: list[list[str]] = Field(description="From top to bottom; each with a cell for every column.")
    total: list[str] = Field(description="The row below them all; empty where there is none.")
    chosen: list[int] = Field(description="The rows of what was decided, counted from 0.")
    folded: bool = Field(description="Whether it is shown only when somebody asks for it.")


class RunTables(Answer):
    """All tables of a run."""

    run: str = Field(description="The run's name.")
    tables: list[RunTable] = Field(description="Those at the top of the page first.")
