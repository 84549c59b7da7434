"""Results in a file, one JSON object a line, so that a stopped comparison can continue.

A line is a result with its setting. A rerun reuses a result only if the setting, the version and the oracle are the
same, so another recording with the same name is not confused with it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlcd.core.errors import UserError
from mlcd.core.version import VERSION
from mlcd_bench.problems import Problem
from mlcd_bench.train import Result, Setting

Key = tuple[str, str, float | None, float | None, float, float, str, int, str]


class Journal:
    """A file of results, read at the start and appended to."""

    def __init__(self, path: Path) -> None:
        """Read the file. An incomplete last line, as after a crash, is dropped; other mistakes are errors."""
        self._known: dict[Key, Result] = {}
        text = path.read_bytes() if path.exists() else b""
        whole = text.rfind(b"\n") + 1
        for number, line in enumerate(text[:whole].splitlines(), start=1):
            try:
                document = json.loads(line)
                setting = json.dumps(document.pop("setting"), sort_keys=True)
                result = Result.of(document)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UserError(f"{path}:{number}: not a result of mlcd bench; name another file to resume") from error
            self._known[_key(result, setting)] = result
        self._file = path.open("ab")
        self._file.truncate(whole)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, problem: Problem, method: str, seed: int, setting: Setting) -> Result | None:
        """The stored result of this run, if there is one."""
        key: Key = (
            problem.recording.name,
            str(problem.scenario),
            problem.limit_factor,
            problem.limit,
            problem.oracle_usd,
            problem.oracle_hours,
            method,
            seed,
            json.dumps(_setting_document(setting), sort_keys=True),
        )
        return self._known.get(key)

    def add(self, result: Result, setting: Setting) -> None:
        """Append a result and flush it to the operating system."""
        line = json.dumps(
            {"setting": _setting_document(setting), **result.document()}, allow_nan=False, separators=(",", ":")
        )
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _setting_document(setting: Setting) -> dict[str, Any]:
    return {**asdict(setting), "version": VERSION}


def _key(result: Result, setting: str) -> Key:
    return (
        result.recording,
        result.scenario,
        result.limit_factor,
        result.limit,
        result.oracle_usd,
        result.oracle_hours,
        result.method,
        result.seed,
        setting,
    )
