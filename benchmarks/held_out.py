"""Results on held-out data: decisions, elastic forecasts, serving, training on functions.

python benchmarks/held_out.py [--section decisions]... [--shared ../shared] [--out FILE.json] [--before FILE.json]

Each section is a file of `splits/`: a description of its split (`SPLIT`), and `run(shared)`, which returns rows of
figures. To see the effect of a change, run the version before it (first on PYTHONPATH) with `--out`, then the new one
with `--before` that file: cells then read 'before -> after'.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.append(str(HERE))  # after PYTHONPATH: that says which version is measured

from mlcd.core.version import VERSION  # noqa: E402

SECTIONS = ("decisions", "elastic", "serving", "functions")

Row = Mapping[str, object]


def main() -> int:
    given = _arguments()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    print(f"mlcd {VERSION}, {versions}, Python {platform.python_version()}")
    before = json.loads(given.before.read_text(encoding="utf-8")) if given.before is not None else {}
    results: dict[str, list[Row]] = {}
    for name in given.section or SECTIONS:
        section = import_module(f"benchmarks.splits.{name}")
        print(f"\n## {name}\n\n{section.SPLIT}", flush=True)
        started = time.perf_counter()
        results[name] = section.run(given.shared)
        took = time.perf_counter() - started
        for table in tables(results[name], before.get(name, [])):
            print(f"\n{table}")
        print(f"\n{took:.0f} s", flush=True)
        if given.out is not None:
            given.out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


def tables(rows: Sequence[Row], before: Sequence[Row]) -> Iterator[str]:
    """A table for each set of rows with the same columns, with the figures before."""
    past = {_label(row): row for row in before}
    for columns, group in groupby(rows, key=lambda row: tuple(name for name in row if _is_shown(row[name]))):
        lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for row in group:
            cells = (_cell(row[name], past.get(_label(row), {}).get(name)) for name in columns)
            lines.append("| " + " | ".join(cells) + " |")
        yield "\n".join(lines)


def _is_shown(value: object) -> bool:
    """Whether a value is shown in a table; nested details are only in the file."""
    return not isinstance(value, list | dict)


def _label(row: Row) -> tuple[str, ...]:
    """The label of a row: its text and boolean values."""
    return tuple(str(value) for value in row.values() if isinstance(value, str | bool))


def _cell(value: object, before: object) -> str:
    if before is None or isinstance(value, str) or value == before:
        return _written(value)
    return f"{_written(before)} -> {_written(value)}"


def _written(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only this; may be given again")
    parser.add_argument("--shared", type=Path, default=HERE.parent / "shared", help="the folder of the measurements")
    parser.add_argument("--out", type=Path, help="write the rows, with details, as JSON")
    parser.add_argument("--before", type=Path, help="what an earlier version has written with --out")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
