"""A strict CSV reader: every error names the file, the line and what to do."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlcd.core.errors import UserError


@dataclass(frozen=True)
class Line:
    """One data line of a table. Its methods read a cell, and raise with file:line if they cannot."""

    where: str
    cells: dict[str, str]
    complain: type[UserError]

    def text(self, column: str) -> str:
        """A cell that must not be empty."""
        if not self.cells[column]:
            raise self.error(f"{column} is empty; fill it in")
        return self.cells[column]

    def number(self, column: str, *, above_zero: bool = False) -> float:
        """A finite number, zero or more."""
        written = self.cells[column]
        try:
            value = float(written)
        except ValueError:
            raise self.error(f"{column} '{written}': expected a number, such as 3.06") from None
        if not math.isfinite(value):
            raise self.error(f"{column} '{written}': expected a finite number, such as 3.06")
        if value < 0 or (above_zero and value == 0):
            raise self.error(f"{column} '{written}': must be {'more than zero' if above_zero else 'zero or more'}")
        return value

    def optional_number(self, column: str) -> float | None:
        """A number; None if the cell is empty or the column missing."""
        return self.number(column) if self.cells.get(column) else None

    def count(self, column: str) -> int:
        """A whole number, zero or more."""
        value = self.number(column)
        if value != int(value):
            raise self.error(f"{column} '{self.cells[column]}': expected a whole number, such as 8")
        return int(value)

    def error(self, message: str) -> UserError:
        """The error of this line, with file:line."""
        return self.complain(f"{self.where}: {message}")


def read_table(text: str, *, name: str, columns: Sequence[str], complain: type[UserError]) -> Iterator[Line]:
    """The data lines of a CSV text that must have these columns; others are ignored. `complain`: type of errors."""
    # spreadsheets may write a byte order mark in front of the first column's name
    reader = csv.reader(text.removeprefix("\ufeff").splitlines(), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        missing = [column for column in columns if column not in header]
        if missing:
            raise complain(f"{name}:1: missing column {', '.join(missing)}; expected {','.join(columns)}")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{name}:{reader.line_num}"
            if len(cells) != len(header):
                raise complain(f"{where}: {len(cells)} cells, but the header has {len(header)} columns")
            yield Line(where, {column: cell.strip() for column, cell in zip(header, cells, strict=True)}, complain)
    except csv.Error as error:
        raise complain(f"{name}:{reader.line_num}: not a CSV line: {error}") from None
