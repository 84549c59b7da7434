"""mlcd bench functions: plans for tuning and training on functions, against other systems. All modelled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_json
from mlcd.core.units import counted, format_duration, format_usd
from mlcd_bench.cli.names import split_names

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd_bench.functions import Contest, Kept, Run, Savings, Setting

MODELLED = (
    "All figures are modelled: published constants of AWS, list prices, equations of CE-scaling as corrected; "
    "nothing was measured on functions."
)
RULES = (
    "Limits are multiples of the cheapest or fastest possible plan. TIME, COST: - if a method has no plan within the "
    "limit; for training the mean over seeds. !: violated, i.e. a seed exceeded the limit or did not reach the target "
    "within it. EXACT SAVES, GREEDY SAVES: share of time (within a budget) or cost (within a deadline) saved against "
    "the method of that row, if neither is violated; negative: a loss. PLANNING: time for the Pareto boundary (shared "
    "by all runs of a job, counted in each) and the plan; for training all decisions of a run. The lower tables count "
    "each seed alone. OVER: violated runs that exceeded the limit; the others missed the target. BEST: the best "
    "baseline in each case. CLAIMED: savings of the greedy planner in CE-scaling's abstract, against all its baselines."
)


def _factors(ctx: click.Context, param: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        factors = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        factors = (0.0,)
    if not all(1 <= factor < 1e6 for factor in factors):
        raise click.BadParameter(f"'{text}': expected multiples of 1 or more, such as 1.2,2", ctx, param)
    return factors


@click.command()
@click.option("--job", default="all", show_default=True, help="lr-higgs, bert-imdb ...; several with commas.")
@click.option("--phase", default="all", show_default=True, help="tuning, training; several with commas.")
@click.option("--method", default="all", show_default=True, help="exact, greedy, lambdaml ...; several with commas.")
@click.option(
    "--limit-factor",
    default="1.05,1.2,1.5,2,4,8",
    show_default=True,
    callback=_factors,
    help="The limits, as multiples of the smallest possible.",
)
@click.option("--trials", default=16_384, show_default=True, type=click.IntRange(1), help="Trials of the tuning.")
@click.option(
    "--seeds", default=5, show_default=True, type=click.IntRange(1), help="Seeds of the training: 0, 1, 2 ..."
)
@click.option("--processes", default=None, type=click.IntRange(1), help="Processes; all cores by default.")
@output
def functions(
    job: str,
    phase: str,
    method: str,
    limit_factor: tuple[float, ...],
    trials: int,
    seeds: int,
    processes: int | None,
    output: str,
) -> None:
    """Compare plans for functions with those of four other systems.

    Jobs have the sizes of CE-scaling's evaluation. All figures are modelled.

    \b
    mlcd bench functions --job lr-higgs --phase tuning
    """
    from mlcd_bench.functions import JOBS, METHODS, PHASES, Setting, compete, kept, savings

    jobs = split_names("job", job, list(JOBS))
    phases, methods = split_names("phase", phase, PHASES), split_names("method", method, METHODS)
    setting = Setting(trials, seeds, limit_factor)
    results, progress = consoles()
    with progress.status("") as status:
        comparison = compete(
            jobs,
            phases,
            methods,
            setting,
            processes or os.cpu_count() or 1,
            lambda done, of: status.update(f"{done} of {of} parts"),
        )
    if output == "json":
        summary = {"savings": _plain(savings(comparison.cases)), "kept": _plain(kept(comparison.cases))}
        print_json({"runs": _plain(comparison.runs), "summary": summary, "setting": _setting(setting, jobs)})
    else:
        _show(results, comparison, setting)


def _plain(rows: Sequence[Run] | Sequence[Savings] | Sequence[Kept]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def _setting(setting: Setting, jobs: Sequence[str]) -> dict[str, Any]:
    """The settings of the runs, for the output."""
    from mlcd_bench.functions import CLAIMS, JOBS

    tariff = JOBS[jobs[0]].model.tariff
    return {
        "figures": "modelled",
        "model": JOBS[jobs[0]].model.calibration.source,
        "prices": f"{tariff.cloud} {tariff.region}, {tariff.date}",
        **asdict(setting),
        "jobs": {name: JOBS[name].sizes for name in jobs},
        "claims": {f"{phase} within a {kind}": claim for (phase, kind), claim in CLAIMS.items()},
        "versions": _versions(),
    }


def _show(console: Console, comparison: Contest, setting: Setting) -> None:
    from mlcd_bench.functions import kept, savings

    _show_runs(console, comparison.runs)
    _show_kept(console, kept(comparison.cases))
    _show_savings(console, savings(comparison.cases))
    versions = ", ".join(f"{name} {version}" for name, version in _versions().items())
    console.print(MODELLED, highlight=False)
    note = f"{counted(setting.trials, 'trial')}; seeds 0..{setting.seeds - 1}. {RULES} {versions}."
    console.print(note, style="dim", highlight=False)


def _show_runs(console: Console, runs: Sequence[Run]) -> None:
    from mlcd_bench.functions import BASELINES, OURS, cases, saving

    table = plain_table(
        ("JOB", "PHASE", "LIMIT", "METHOD"), ("TIME", "COST", "EXACT SAVES", "GREEDY SAVES", "PLANNING")
    )
    for case in cases(runs):
        for run in case:
            saved = [_percent(saving(case, ours, run.method)) if run.method in BASELINES else "" for ours in OURS]
            first = run is case[0]
            table.add_row(
                *((run.job, run.phase, _limit(run)) if first else ("", "", "")),
                f"{run.method} !" if run.violated else run.method,
                format_duration(run.hours * 3_600) if run.hours is not None else "-",
                format_usd(run.usd) if run.usd is not None else "-",
                *saved,
                f"{run.planning_ms:,.0f} ms",
            )
    console.print(table)
    console.print()


def _show_kept(console: Console, rows: Sequence[Kept]) -> None:
    table = plain_table(("PHASE", "LIMIT", "METHOD"), ("RUNS", "NO PLAN", "VIOLATED", "OVER"))
    for row in rows:
        counts = map(str, (row.runs, row.without_plan, row.violated, row.over))
        table.add_row(row.phase, row.limit_kind, row.method, *counts)
    console.print(table)
    console.print()


def _show_savings(console: Console, rows: Sequence[Savings]) -> None:
    from mlcd_bench.functions import BUDGET

    table = plain_table(("PHASE", "SAVED", "METHOD", "AGAINST"), ("PAIRS", "MEDIAN", "WORST", "MOST", "CLAIMED"))
    for row in rows:
        saved = "time within a budget" if row.limit_kind == BUDGET else "cost within a deadline"
        shares = map(_percent, (row.median, row.least, row.most))
        claimed = f"up to {row.claimed:.0%}"
        table.add_row(row.phase, saved, row.method, row.against, str(row.pairs), *shares, claimed)
    console.print(table)
    console.print()


def _limit(run: Run) -> str:
    from mlcd_bench.functions import BUDGET

    return format_usd(run.limit) if run.limit_kind == BUDGET else format_duration(run.limit * 3_600)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from mlcd.core.version import VERSION

    return {"mlcd": VERSION, **{name: version(name) for name in ("numpy", "scipy")}}
