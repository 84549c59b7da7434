"""Reads the tables of a knowledge folder exactly: a name may begin with a space or contain a line break."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlcd.core.csv_table import Line
from mlcd.core.errors import RecordingError
from mlcd.planners.serve.knobs import Knob


def read_lines(path: Path, columns: Sequence[str]) -> list[Line]:
    """The data lines of a CSV file with these columns."""
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
            yield Line(f"{path}:{line}", dict(zip(header, cells, strict=True)), RecordingError)
    except csv.Error as error:
        raise RecordingError(f"{path}:{line + 1}: not a CSV line: {error}") from None


def as_knob(written: str) -> Knob:
    """A knob's value in text: an integer, a number, or a word."""
    for kind in (int, float):
        try:
            value = kind(written)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return written
