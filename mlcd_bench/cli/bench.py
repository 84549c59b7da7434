"""mlcd bench: compare methods with an oracle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, output, parsed_by
from mlcd.core.units import parse_share
from mlcd_bench.cli.functions import functions
from mlcd_bench.cli.names import split_names
from mlcd_bench.cli.paper import paper
from mlcd_bench.cli.plans import plans
from mlcd_bench.cli.scale import scale
from mlcd_bench.cli.serve import serve
from mlcd_bench.cli.spot import spot

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.clouds.recording import Recording
    from mlcd_bench.contest import Crash, Task
    from mlcd_bench.page import Contest, Panel
    from mlcd_bench.problems import Problem
    from mlcd_bench.train import Result, Setting

SCENARIOS = ("fastest", "cheapest-by-deadline", "fastest-within-budget")
MOST_CRASHES = 10
CRASHED = 1


@click.group()
def bench() -> None:
    """Compare methods with an oracle, on recordings."""


bench.add_command(paper)
bench.add_command(plans)
bench.add_command(scale)
bench.add_command(serve)
bench.add_command(functions)
bench.add_command(spot)


@bench.command()
@click.argument("recordings", nargs=-1, required=True)
@click.option("--scenario", default="all", show_default=True, help=f"{', '.join(SCENARIOS)}; several with commas.")
@click.option(
    "--limit-factor", default="1.5,3", show_default=True, help="The limit, as multiples of the smallest possible."
)
@click.option("--method", default="net-value", show_default=True, help="NAME or NAME+guard, all, tools; with commas.")
@click.option("--hours", default=None, help="Scale each job to so many hours at best, such as 1,4,20,100.")
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(1), help="How many seeds: 0, 1, 2 ...")
@click.option("--noise", default=0.03, show_default=True, type=click.FloatRange(0, 0.5), help="Error of a probe.")
@click.option(
    "--failures", default=0.0, show_default=True, type=click.FloatRange(0, 0.9), help="Share of probes that fail."
)
@click.option(
    "--early-look",
    metavar="SHARE",
    callback=parsed_by(parse_share),
    help="Look at a probe after this share of it, such as 0.3.",
)
@click.option("--parallel", default=1, show_default=True, type=click.IntRange(1, 64), help="Probes at once, at most.")
@click.option("--checkpoints", is_flag=True, help="The job saves its work, so the work of probes counts.")
@click.option("--earlier", is_flag=True, help="The same job was searched once before.")
@click.option("--processes", default=None, type=click.IntRange(1), help="Processes; all cores by default.")
@click.option(
    "--resume", default=None, type=click.Path(path_type=Path), help="Append results to this file; skip those in it."
)
@click.option("--html", default=None, type=click.Path(path_type=Path), help="Write a page of the results to this file.")
@output
def train(
    recordings: tuple[str, ...],
    scenario: str,
    limit_factor: str,
    method: str,
    hours: str | None,
    seeds: int,
    noise: float,
    failures: float,
    early_look: float | None,
    parallel: int,
    checkpoints: bool,
    earlier: bool,
    processes: int | None,
    resume: Path | None,
    html: Path | None,
    output: str,
) -> int:
    """Compare search methods for training on recordings.

    Ratios are totals, probes included, over those of an oracle that never probes. RECORDINGS are folders, or
    'simulated' for 62 types x 50 nodes ('simulated:bert' for one job).

    \b
    mlcd bench train examples/recordings/char-rnn-local --method all
    """
    from mlcd_bench.contest import Crash, tasks
    from mlcd_bench.methods import check_installed, parse_methods
    from mlcd_bench.problems import Scenario, problems, rescaled
    from mlcd_bench.train import Result, Setting

    names = parse_methods(method)
    check_installed(names)
    scenarios = [Scenario(name) for name in split_names("scenario", scenario, SCENARIOS)]
    factors = _numbers(
        "--limit-factor", limit_factor, "1.5,3", 1, "since it multiplies the smallest possible time or cost"
    )
    loaded = _load(recordings)
    if hours is not None:
        loaded = rescaled(loaded, _numbers("--hours", hours, "1,4,20", 0.01, "or the job is too short"))
    selected = problems(loaded, scenarios, factors)
    look = early_look if early_look and early_look < 1 else None
    setting = Setting(noise, failures, look, parallel, checkpoints, earlier)
    todo = tasks(selected, names, range(seeds))
    if html is not None:
        html.open("a").close()  # fail now if it cannot be written, not after half an hour
    outcomes = _run_all(selected, todo, setting, processes, resume)
    done = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    crashes = [outcome for outcome in outcomes if isinstance(outcome, Crash)]
    _report_crashes(crashes, len(todo))
    if html is not None:
        from mlcd_bench.page import page

        html.write_text(page(_contest(selected, done, setting, seeds, [str(c) for c in crashes])), encoding="utf-8")
    if output == "json":
        _print(done)
    elif done:
        _show(consoles()[0], done, setting, seeds, len(loaded))
    return CRASHED if crashes else 0


def _run_all(
    selected: Sequence[Problem], todo: Sequence[Task], setting: Setting, processes: int | None, resume: Path | None
) -> list[Result | Crash]:
    """Make the runs with a progress bar, and return them in the order of the report."""
    import os

    from rich.progress import track

    from mlcd_bench.contest import contest
    from mlcd_bench.journal import Journal

    journal = Journal(resume) if resume is not None else None
    runs = contest(selected, todo, setting, processes or os.cpu_count() or 1, journal)
    try:
        outcomes = dict(track(runs, "searching", len(todo), console=consoles()[1], transient=True))
    finally:
        if journal is not None:
            journal.close()
    return [outcomes[task] for task in todo]


def _report_crashes(crashes: Sequence[Crash], total: int) -> None:
    for crash in crashes[:MOST_CRASHES]:
        click.echo(f"crashed: {crash}", err=True)
    if crashes:
        click.echo(f"{len(crashes)} of {total} runs crashed; the others are below", err=True)


def _load(recordings: Sequence[str]) -> list[Recording]:
    from mlcd.clouds.recording import load_recording
    from mlcd_bench.simulated import NAME, simulated_recordings

    loaded: list[Recording] = []
    for name in recordings:
        if name.partition(":")[0] == NAME:
            loaded += simulated_recordings(name)
        else:
            loaded.append(load_recording(name.removeprefix("recorded:")))
    return loaded


def _numbers(option: str, text: str, example: str, least: float, why: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{text}': expected numbers, such as {example}", param_hint=option) from None
    if any(not least <= number < 1e6 for number in numbers):
        raise click.BadParameter(f"'{text}': each must be {least:g} or more, {why}", param_hint=option)
    return numbers


def _print(done: Sequence[Result]) -> None:
    """JSON with a run on each line: there may be tens of thousands."""
    click.echo('{"runs": [', nl=False)
    for i, result in enumerate(done):
        click.echo(",\n" if i else "\n", nl=False)
        click.echo(json.dumps(result.document(), allow_nan=False), nl=False)
    click.echo("\n]}")


def _contest(
    problems: Sequence[Problem], done: Sequence[Result], setting: Setting, seeds: int, crashes: Sequence[str]
) -> Contest:
    from datetime import UTC, datetime

    from mlcd_bench.page import Contest
    from mlcd_bench.summary import focus_on, summarise
    from mlcd_bench.traces import traces

    panels = summarise(done)
    facts = [
        ("Seeds", f"0 to {seeds - 1}"),
        ("Noise of a probe", f"{setting.noise:g}"),
        ("Probes failing by chance", f"{setting.failures:g}"),
        ("Made", f"{datetime.now(UTC):%-d %B %Y}"),
        *_versions(),
    ]
    return Contest(
        tuple(panels),
        focus_on(done, panels),
        tuple(traces(problems, done, panels)),
        tuple(dict.fromkeys(problem.recording.name for problem in problems)),
        len(done),
        tuple(facts),
        tuple(crashes),
    )


def _versions() -> list[tuple[str, str]]:
    import numpy
    import scipy
    import sklearn

    from mlcd.core.version import VERSION

    return [
        ("mlcd", VERSION),
        ("numpy", numpy.__version__),
        ("scipy", scipy.__version__),
        ("scikit-learn", sklearn.__version__),
    ]


def _show(console: Console, done: Sequence[Result], setting: Setting, seeds: int, recordings: int) -> None:
    from rich.table import Table

    from mlcd_bench.summary import summarise

    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in ("METHOD", "SCENARIO"):
        table.add_column(column, no_wrap=True)
    for column in ("LIMIT", "RUNS", "CERTIFIED", "OVER", "MEDIAN", "MEAN", "P95", "PROBING", "PROBES"):
        table.add_column(column, justify="right", no_wrap=True)
    for panel in summarise(done):
        _add(table, panel)
    console.print(table)
    versions = ", ".join(f"{name} {version}" for name, version in _versions())
    failing = f", {setting.failures:g} of the probes failing" if setting.failures else ""
    console.print(
        f"{recordings} recording{'s' if recordings > 1 else ''}, seeds 0..{seeds - 1}, noise {setting.noise:g}"
        f"{failing}; {versions}. "
        "MEDIAN, MEAN, P95: total over oracle, of the runs that chose. OVER: runs over their limit. "
        "* best median, refusals counting as worst, of those that never exceeded a limit.",
        style="dim",
        highlight=False,
    )


def _add(table: object, panel: Panel) -> None:
    from rich.table import Table

    assert isinstance(table, Table)
    for row in panel.standings:
        best = row.method == panel.best
        spread = row.ratios
        ratios = (spread.median, spread.mean, spread.p95) if spread is not None else (None, None, None)
        table.add_row(
            f"{row.method} *" if best else row.method,
            panel.scenario,
            f"x{panel.limit_factor:g}" if panel.limit_factor is not None else "-",
            str(row.runs),
            f"{row.certified / row.runs:.0%}",
            f"{row.over}" + (f" ({row.certified_over} certified)" if row.over else ""),
            *(f"{value:.2f}" if value is not None else "-" for value in ratios),
            f"{row.probing_share:.0%}",
            f"{row.probes:.1f}",
            style="bold" if best else None,
            end_section=row is panel.standings[-1],
        )
