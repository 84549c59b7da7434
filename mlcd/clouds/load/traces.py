"""Reads arrival traces: arrival time and lengths of each request, one per line. CSV with a header, or JSON Lines.

| of            | time                    | tokens of a prompt | tokens of an answer |
|---------------|-------------------------|--------------------|---------------------|
| own files     | time_s, seconds         | input_tokens       | output_tokens       |
| Azure's (CSV) | TIMESTAMP, date or s    | ContextTokens      | GeneratedTokens     |
| Mooncake's    | timestamp, milliseconds | input_length       | output_length       |

Token counts may be left out, for all requests.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mlcd.clouds.load.generate import Replay
from mlcd.core.errors import UserError

INPUT, OUTPUT = ("input_tokens", "contexttokens", "input_length"), ("output_tokens", "generatedtokens", "output_length")
"""Accepted column names, in lower case."""


@dataclass(frozen=True)
class Trace:
    """Requests sorted by time. `lengths`: input and output tokens of each; empty if the file has none."""

    arrivals: Replay
    lengths: tuple[tuple[int, int], ...] = ()


def read_trace(path: Path, time_scale: float = 1.0) -> Trace:
    """The requests of a trace, the first one at 0 s. `time_scale`: 0.5 plays it twice as fast.

    UserError, with file and line, if it cannot be used.
    """
    if not 0 < time_scale < math.inf:
        raise UserError(f"time scale {time_scale:g}: expected a number above 0")
    requests = sorted(_request(fields, where) for fields, where in _rows(path))
    if not requests:
        raise UserError(f"{path}: it has no request")
    given = [lengths for _, lengths in requests if lengths]
    if given and len(given) < len(requests):
        raise UserError(f"{path}: some requests have numbers of tokens, others have none")
    times_s = tuple((time_s - requests[0][0]) * time_scale for time_s, _ in requests)
    return Trace(Replay(times_s), tuple((each[0], each[1]) for each in given))


def _rows(path: Path) -> Iterator[tuple[Mapping[str, object], str]]:
    """The fields of each request, with names in lower case, and their position for messages."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or 'is not text in UTF-8'}") from None
    if not any(line.lstrip().startswith("{") for line in lines[:1]):
        reader = csv.DictReader(lines)
        for row in reader:
            yield {str(name).strip().lower(): value for name, value in row.items()}, f"{path}:{reader.line_num}"
        return
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                document = json.loads(line)
            except ValueError:
                document = None
            if not isinstance(document, dict):
                raise UserError(f"{path}:{number}: expected a JSON object")
            yield {str(name).lower(): value for name, value in document.items()}, f"{path}:{number}"


def _request(fields: Mapping[str, object], where: str) -> tuple[float, tuple[int, ...]]:
    """The arrival time of a request in seconds, and its token counts if given."""
    counts = [next((fields[name] for name in names if fields.get(name) is not None), None) for names in (INPUT, OUTPUT)]
    if (counts[0] is None) != (counts[1] is None):
        raise UserError(f"{where}: expected tokens of both the prompt and the answer, or of neither")
    return _time_s(fields, where), tuple(_count(each, where) for each in counts if each is not None)


def _time_s(fields: Mapping[str, object], where: str) -> float:
    value = fields.get("time_s", fields.get("timestamp"))
    if value is None:
        raise UserError(f"{where}: no time: expected a column 'time_s' (seconds) or 'timestamp'")
    try:
        time_s = float(str(value))
    except ValueError:
        time_s = _date_s(str(value), where)
    if not math.isfinite(time_s):
        raise UserError(f"{where}: '{value}' is not a time")
    mooncake = "time_s" not in fields and "input_length" in fields
    return time_s / 1_000 if mooncake else time_s


def _date_s(text: str, where: str) -> float:
    """Seconds since 1970."""
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UserError(
            f"{where}: '{text}' is not a time: expected seconds, or a date such as 2023-11-16 18:15:46"
        ) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _count(value: object, where: str) -> int:
    """A token count, at least 1: some traces have empty answers, but a request must ask for a token."""
    try:
        count = int(str(value))
    except ValueError:
        count = -1
    if count < 0:
        raise UserError(f"{where}: '{value}' is not a number of tokens")
    return max(1, count)
