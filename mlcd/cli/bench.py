"""mlcd bench: measure methods against an oracle."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, output, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.bench.train import Result

SCENARIOS = ("fastest", "cheapest-by-deadline", "fastest-within-budget")


@click.group()
def bench() -> None:
    """Measure methods against an oracle, on recordings."""


@bench.command()
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--scenario", default="all", show_default=True, help=f"{', '.join(SCENARIOS)}; several with commas.")
@click.option("--limit-factor", default="1.5,3", show_default=True, help="The limit, as multiples of the possible.")
@click.option("--method", default="heterbo", show_default=True, help="Methods, with commas, or all.")
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(1), help="How many seeds: 0, 1, 2 ...")
@click.option("--noise", default=0.03, show_default=True, type=click.FloatRange(0, 0.5), help="Error of a probe.")
@click.option("--processes", default=None, type=click.IntRange(1), help="Processes; all cores by default.")
@output
def train(
    recordings: tuple[Path, ...],
    scenario: str,
    limit_factor: str,
    method: str,
    seeds: int,
    noise: float,
    processes: int | None,
    output: str,
) -> None:
    """Run methods on recordings; ratios are totals, probes included, over an oracle that never probes."""
    import os

    from rich.progress import track

    from mlcd.assemble import METHODS
    from mlcd.backends import load_recording
    from mlcd.bench.train import Scenario, contest, problems

    names = _several("method", method, METHODS)
    scenarios = [Scenario(name) for name in _several("scenario", scenario, SCENARIOS)]
    loaded = [load_recording(str(path).removeprefix("recorded:")) for path in recordings]
    found = problems(loaded, scenarios, _factors(limit_factor))
    results, progress = consoles()
    total = len(found) * len(names) * seeds
    runs = contest(found, names, range(seeds), noise, processes or os.cpu_count() or 1)
    done = list(track(runs, "searching", total, console=progress, transient=True))
    if output == "json":
        print_json({"runs": [result.document() for result in done]})
        return
    _show(results, done, noise, seeds, len(recordings))


def _several(what: str, written: str, known: Collection[str]) -> list[str]:
    from mlcd.errors import UnknownName

    names = list(known) if written == "all" else [name.strip() for name in written.split(",")]
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)
    return names


def _factors(written: str) -> list[float]:
    try:
        factors = [float(part) for part in written.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{written}': expected numbers, such as 1.5,3", param_hint="--limit-factor") from None
    if any(not 1 <= factor < 1e6 for factor in factors):
        told = f"'{written}': each must be 1 or more, since the limit is so many times the smallest possible"
        raise click.BadParameter(told, param_hint="--limit-factor")
    return factors


def _show(console: Console, done: Sequence[Result], noise: float, seeds: int, recordings: int) -> None:
    import numpy
    import scipy
    import sklearn
    from rich.table import Table

    from mlcd.bench.summary import summarise
    from mlcd.version import VERSION

    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in ("METHOD", "SCENARIO"):
        table.add_column(column, no_wrap=True)
    for column in ("LIMIT", "RUNS", "CERTIFIED", "OVER", "MEDIAN", "MEAN", "P95", "PROBING", "PROBES"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in summarise(done):
        table.add_row(
            row.method,
            row.scenario,
            f"x{row.limit_factor:g}" if row.limit_factor is not None else "-",
            str(row.runs),
            f"{row.certified / row.runs:.0%}",
            f"{row.violated}" + (f" ({row.certified_violated} certified)" if row.violated else ""),
            *(f"{value:.2f}" if value is not None else "-" for value in (row.median, row.mean, row.p95)),
            f"{row.probing_share:.0%}",
            f"{row.probes:.1f}",
        )
    console.print(table)
    console.print(
        f"{recordings} recording{'s' if recordings > 1 else ''}, seeds 0..{seeds - 1}, noise {noise:g}; "
        f"mlcd {VERSION}, numpy {numpy.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}. "
        "MEDIAN, MEAN, P95: total over oracle, of the runs that chose. OVER: runs past their limit.",
        style="dim",
        highlight=False,
    )
