"""The tables of a run, as the OpenAPI document describes them: what `mlcd.reports.run_tables` makes."""

from __future__ import annotations

from pydantic import Field

from mlcd.service.web.answers import Answer


class TableColumn(Answer):
    """A column of a table."""

    name: str = Field(description="Its head.")
    number: bool = Field(description="Whether it holds numbers, which stand at the right.")


class RunTable(Answer):
    """A table in words."""

    title: str = Field(description="What it shows.")
    note: str = Field(description="What a reader should know of it; empty where there is nothing to say.")
    columns: list[TableColumn] = Field(description="Its columns.")
    rows: list[list[str]] = Field(description="Its rows, each with a cell for each column.")
    total: list[str] = Field(description="The last row, of the sums; empty where there is none.")
    chosen: list[int] = Field(description="Which rows, counted from 0, are of what was chosen.")
    folded: bool = Field(description="Whether a page shows it only when it is opened.")


class Tables(Answer):
    """All tables of a run."""

    run: str = Field(description="The run's name.")
    tables: list[RunTable] = Field(description="In the order of the page.")
