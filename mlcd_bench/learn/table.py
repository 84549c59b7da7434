"""A CSV table that is appended row by row, so that a measurement can continue after a stop."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlcd.planners.serve.model_facts import Profile

Row = Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """A CSV file with these columns, created with its first rows."""

    path: Path
    columns: tuple[str, ...]

    def rows(self) -> list[dict[str, str]]:
        """All complete rows."""
        self._drop_torn_line()
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def keys(self, *names: str) -> set[tuple[str, ...]]:
        """The values of these columns in all rows."""
        return {tuple(row[name] for name in names) for row in self.rows()}

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows; they are on disk when this returns."""
        self._drop_torn_line()
        fresh = not self.path.exists() or self.path.stat().st_size == 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerows(rows)

    def _drop_torn_line(self) -> None:
        """Drop an incomplete last line, left by a stop while writing; that row is measured again."""
        text = self.path.read_text(encoding="utf-8", errors="ignore") if self.path.exists() else ""
        if text and not text.endswith("\n"):
            self.path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")


def key(*values: object) -> tuple[str, ...]:
    """Values in the spelling of a table's keys."""
    return tuple(str(value) for value in values)


def profile_rows(model: str, profile: Profile) -> list[Row]:
    """A profile as rows of operators.csv."""
    head = {"model": model, "precision": profile.precision, "batch": profile.batch}
    return [
        {**head, "operator": each.name, "calls": each.calls, "seconds": each.seconds, "memory_mb": each.memory_mb}
        for each in profile.operators
    ]


@dataclass(frozen=True)
class Tables:
    """The files of a knowledge folder. `knobs`: the names of the cell's knobs."""

    folder: Path
    knobs: Sequence[str]

    @property
    def points(self) -> Table:
        """A row for each model and cell that ran."""
        facts = ("model", "family", "inputs", "weights_mb", "parameters")
        return Table(self.folder / "points.csv", (*facts, *self.knobs, "rate", "p50_s", "p95_s", "peak_gb"))

    @property
    def failed(self) -> Table:
        """A row for each model and cell that did not run, with the reason."""
        return Table(self.folder / "failed.csv", ("model", *self.knobs, "reason"))

    @property
    def operators(self) -> Table:
        """A row for each operator of a model's profile."""
        names = ("model", "precision", "batch", "operator", "calls", "seconds", "memory_mb")
        return Table(self.folder / "operators.csv", names)

    @property
    def curves(self) -> Table:
        """A row for each single operator and cell."""
        return Table(self.folder / "operator_curves.csv", ("operator", *self.knobs, "rate"))

    @property
    def host(self) -> Table:
        """A row for each kind of input and number of cores."""
        return Table(self.folder / "host.csv", ("input", "cores", "requests_per_s"))
