"""A CSV file read strictly: every complaint names the file, the line and what to do."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlcd.errors import RecordingError
from mlcd.knobs import Knob


@dataclass(frozen=True)
class Line:
    """One data line of a table; its readers complain with file:line."""

    where: str
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """A cell that must say something."""
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
        if not math.isfinite(value) or value < 0 or (above_zero and value == 0):
            raise self.error(f"{column} '{written}': expected {'more than zero' if above_zero else 'zero or more'}")
        return value

    def perhaps(self, column: str) -> float | None:
        """A number that may be left out, as may its column."""
        return self.number(column) if self.cells.get(column) else None

    def count(self, column: str) -> int:
        """A whole number, zero or more."""
        value = self.number(column)
        if value != int(value):
            raise self.error(f"{column} '{self.cells[column]}': expected a whole number, such as 8")
        return int(value)

    def error(self, complaint: str) -> RecordingError:
        """The complaint, with where it was found."""
        return RecordingError(f"{self.where}: {complaint}")


def read_lines(path: Path, columns: Sequence[str]) -> list[Line]:
    """The data lines of a CSV file that must have these columns."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(_lines(csv.reader(file, strict=True), path, columns))
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; a knowledge folder is made by `mlcd learn`") from None
    except UnicodeDecodeError:
        raise RecordingError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error


def _lines(reader: Iterator[list[str]], path: Path, columns: Sequence[str]) -> Iterator[Line]:
    line = 1
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise RecordingError(f"{path}:1: missing column {', '.join(missing)}; expected {','.join(columns)}")
        for cells in reader:
            line = reader.line_num  # type: ignore[attr-defined]
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise RecordingError(f"{path}:{line}: {len(cells)} cells, but the header has {len(header)} columns")
            yield Line(f"{path}:{line}", dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise RecordingError(f"{path}:{line + 1}: not a CSV line: {error}") from None


def as_knob(written: str) -> Knob:
    """A knob's value as it was written: a whole number, a number, or a word."""
    for kind in (int, float):
        try:
            value = kind(written)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return written
