"""Exports the audit log, newest entries first: CSV for spreadsheets, JSON Lines for other programs."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from typing import Literal

from mlcd.core.errors import MlcdError
from mlcd.service.team.administration import AuditedAction

Format = Literal["csv", "jsonl"]
PAGE = 1_000
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would execute a cell that begins so (CSV injection), and members choose some of these texts."""
CUT = "incomplete: older entries could not be read; export again"
"""The last line of an incomplete file."""


def exported(read: Callable[[int | None], list[AuditedAction]], kind: Format) -> Iterator[str]:
    """The file in pieces. `read`: returns a page of entries before a number, or none at the end.

    If reading fails, the last line says so, and the error is raised to abort the transfer.
    """
    if kind == "csv":
        yield _row([each.name for each in fields(AuditedAction)])
    before: int | None = None
    try:
        while entries := read(before):
            yield "".join(_csv(each) if kind == "csv" else _json(each) for each in entries)
            before = entries[-1].seq
    except MlcdError:
        yield _row([CUT]) if kind == "csv" else json.dumps({"error": CUT}) + "\n"
        raise


def _csv(entry: AuditedAction) -> str:
    return _row([_cell(value) for value in _document(entry).values()])


def _json(entry: AuditedAction) -> str:
    return json.dumps(_document(entry), ensure_ascii=False) + "\n"


def _document(entry: AuditedAction) -> dict[str, object]:
    return {**asdict(entry), "at": entry.at.isoformat()}


def _cell(value: object) -> str:
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _row(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()
