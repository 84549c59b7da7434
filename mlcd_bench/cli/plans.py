"""mlcd bench plans: search methods for training plans, replayed on measured plans."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_json
from mlcd_bench.cli.names import split_names

if TYPE_CHECKING:
    from rich.console import Console

GOALS = ("fastest", "cheapest")
FOLDER, SHIPPED = "folder", "shipped"
SHARES = (
    "WITHIN: share of runs whose choice costs at most 5 % more than the best plan, after so many probes; MEAN, WORST: "
    "cost of the choice over the best plan's; MISSED: nothing chosen, or chosen without a probe and out of memory; "
    "OOM: probes out of memory among the first three. Only problems of four plans or more are counted; after a probe "
    "only probed plans can be chosen. 'practice' knows for free which plans fit."
)
TIMES = (
    "Forecasts of grey-box. MAPE, MEDIAN: error of the step time; HOLD: coverage of the 90 % interval; then the same "
    "after three probes, for plans not probed; THESE 0: the MAPE of these plans before any probe. FITTING: plans out "
    "of memory that were predicted to fit; EXCLUDED: plans that ran but were predicted not to fit."
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--unseen",
    default=None,
    help="Models to plan for, with commas, learning from the others. Default: each model in turn.",
)
@click.option("--method", default="grey-box", show_default=True, help="Methods with commas, or all.")
@click.option(
    "--goal",
    default="both",
    show_default=True,
    type=click.Choice((*GOALS, "both")),
    help="What the best plan minimises.",
)
@click.option(
    "--prior",
    default=FOLDER,
    show_default=True,
    type=click.Choice((FOLDER, SHIPPED)),
    help="Learn from the folder's other models, or take what ships with MLCD.",
)
@click.option("--probes", default=6, show_default=True, type=click.IntRange(0), help="Probes of each run, at most.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1), help="How many seeds: 0, 1, 2 ...")
@click.option("--processes", default=None, type=click.IntRange(1), help="Processes; all cores by default.")
@output
def plans(
    folder: Path,
    unseen: str | None,
    method: str,
    goal: str,
    prior: str,
    probes: int,
    seeds: int,
    processes: int | None,
    output: str,
) -> None:
    """Compare search methods for training plans on measured plans.

    DIR holds CSV files with a measured plan a row. A problem is a model, a sequence length and an adapter; the plans
    measured for it are the space, and probing one that ran out of memory is a lost probe.

    \b
    mlcd bench plans DIR --unseen llama3.1-8b --method all
    """
    from rich.progress import track

    from mlcd.planners.train.plans.memory import CALLED_FITTING
    from mlcd_bench.plans.contest import METHODS, OURS
    from mlcd_bench.plans.folder import read_plans
    from mlcd_bench.plans.problem import PlanGoal, plan_problems
    from mlcd_bench.plans.runs import Entry, informed, played
    from mlcd_bench.plans.summary import choices, forecasts

    methods = split_names("method", method, METHODS)
    rows = read_plans(folder)
    goals = [PlanGoal(each) for each in GOALS if goal in (each, "both")]
    hidden = [name.strip() for name in unseen.split(",")] if unseen else []
    problems = plan_problems(rows, hidden, goals)
    results, progress = consoles()
    processes = processes or os.cpu_count() or 1
    if prior == FOLDER and OURS in methods:
        with progress.status("learning from the other models"):
            problems = informed(problems, processes)
    todo = [Entry(problem, tuple(methods), seeds, probes) for problem in problems]
    outcomes = track(played(todo, processes), "probing", len(todo), console=progress, transient=True)
    runs = [run for each in outcomes for run in each]
    chosen, forecast = choices(runs), forecasts(runs, rows)
    if output == "json":
        setting = {"prior": prior, "probes": probes, "seeds": seeds, "unseen": hidden}
        setting |= {"called_fitting": CALLED_FITTING}
        summary = {"choices": chosen, "forecasts": forecast}
        print_json({"runs": [vars(run) for run in runs], "summary": summary, "setting": setting})
        return
    _show_choices(results, chosen)
    if forecast:
        _show_forecasts(results, forecast)
    results.print(f"{len(problems)} problems, seeds 0..{seeds - 1}.", style="dim", highlight=False)


def _show_choices(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    from mlcd_bench.plans.contest import SHOWN_AFTER

    after = "/".join(map(str, SHOWN_AFTER))
    table = plain_table(("FILE", "GOAL", "METHOD"), ("RUNS", f"WITHIN {after}", "MEAN", "WORST", "MISSED", "OOM"))
    for row in rows:
        at = [row[f"after_{n}"] for n in SHOWN_AFTER]
        figures = (
            "/".join(f"{100 * each['share']:.0f}" for each in at) + " %",
            " ".join(_ratio(each["mean"], 3) for each in at),
            " ".join(_ratio(each["worst"], 2) for each in at),
            "/".join(f"{100 * each['missed']:.0f}" for each in at) + " %",
        )
        names = (row["file"], row["goal"], row["method"], str(row["runs"]))
        table.add_row(*names, *figures, f"{row['out_of_memory']:.2f}")
    console.print(table)
    console.print(SHARES, style="dim", highlight=False)


def _show_forecasts(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    from mlcd_bench.plans.contest import FORECASTS

    late = f"after_{FORECASTS[1]}"
    errors = [f"{word} {n}" for n in FORECASTS for word in ("MAPE", "MEDIAN", "HOLD")]
    table = plain_table(("FILE",), (*errors, f"THESE {FORECASTS[0]}", "FITTING", "EXCLUDED"))
    for row in rows:
        figures = [_share(each[name]) for each in (row["before"], row[late]) for name in ("mape", "median", "coverage")]
        figures.append(_share(row["before_of_these"]["mape"]))
        table.add_row(row["file"], *figures, _share(row["called_fitting"]), _share(row["excluded"]))
    console.print(table)
    console.print(TIMES, style="dim", highlight=False)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _ratio(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
