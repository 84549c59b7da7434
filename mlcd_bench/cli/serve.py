"""mlcd bench serve: search methods for serving configurations, replayed on recorded load tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_json
from mlcd_bench.cli.names import split_names

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd_bench.serve import ServeResult

RULES = (
    "Accuracy: the true value of the configuration that looks best so far over the exhaustive optimum, averaged over "
    "models and seeds. WORST: the final mean of the worst model."
)


def _ms(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Milliseconds, or 'none'."""
    if text is None or text.lower() == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise click.BadParameter(f"'{text}': expected milliseconds, such as 30, or none", ctx, param)
    return value


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--unseen",
    default=None,
    help="Models to search for, with commas; the others are seen. Default: each in turn.",
)
@click.option("--latency-ms", default=None, callback=_ms, help="The cap on p95; 'none'.")
@click.option(
    "--latency-factor",
    default=None,
    type=click.FloatRange(1),
    help="The cap, as a multiple of each model's smallest p95.",
)
@click.option("--itl-ms", default=None, callback=_ms, help="The cap on p95 between two tokens; 'none'.")
@click.option("--ttft-ms", default=None, callback=_ms, help="The cap on p95 to the first token; 'none'.")
@click.option(
    "--trials", default=None, type=click.IntRange(1), help="Trials of each run. Default: 10; 6 for recorded engines."
)
@click.option("--method", default="grey-box", show_default=True, help="Methods with commas, or all.")
@click.option(
    "--seeds",
    default=None,
    type=click.IntRange(1),
    help="How many seeds: 0, 1, 2 ... Default: 10; 3 for recorded engines.",
)
@click.option("--noise", default=0.0, show_default=True, type=click.FloatRange(0, 0.5), help="Error of a trial's rate.")
@click.option("--no-profiles", is_flag=True, help="Search without knowing the unseen model's operators.")
@click.option("--sweeps", is_flag=True, help="Recorded engines: a trial shows a deployment at every concurrency.")
@click.option("--processes", default=None, type=click.IntRange(1), help="Processes; all cores by default.")
@output
def serve(
    folder: Path,
    unseen: str | None,
    latency_ms: float | None,
    latency_factor: float | None,
    itl_ms: float | None,
    ttft_ms: float | None,
    trials: int | None,
    method: str,
    seeds: int | None,
    noise: float,
    no_profiles: bool,
    sweeps: bool,
    processes: int | None,
    output: str,
) -> None:
    """Compare search methods for serving unseen models.

    DIR holds recorded load tests: points.csv, latency.csv or load_tests.csv. Recorded engines (points.csv with TTFT and
    TPOT) are searched under six pairs of caps.

    \b
    mlcd bench serve DIR --latency-ms 30 --method all
    """
    from mlcd.core.errors import UserError
    from mlcd.planners.serve.planner import SERVE_METHODS
    from mlcd_bench.cli.serve_engines import Contest, hold
    from mlcd_bench.serve import Caps, EngineFolder, compete, play, read_folder, serve_problems, summary, unprofiled
    from mlcd_bench.serve.engines import ENGINES_ONLY

    if latency_ms is not None and latency_factor is not None:
        raise UserError("--latency-ms and --latency-factor both cap the latency; give one")
    read = read_folder(folder)
    names = split_names("model", unseen or "all", read.models)
    processes = processes or os.cpu_count() or 1
    caps = Caps(latency_ms, latency_factor, itl_ms, ttft_ms)
    if isinstance(read, EngineFolder):
        if caps != Caps() or no_profiles or noise:
            raise UserError("recorded engines have fixed caps and no noise: leave out --...-ms, --noise and such")
        hold(Contest(read, names, unseen is None, method, trials, seeds, sweeps), processes, output)
        return
    if sweeps:
        raise UserError("--sweeps is for recorded engines: a points.csv with TTFT and TPOT")
    trials, seeds = trials or 10, seeds or 10
    methods = split_names("method", method, [each for each in SERVE_METHODS if each not in ENGINES_ONLY])
    problems = serve_problems(read, names, caps, trials, one_by_one=unseen is None)
    if no_profiles:
        problems = [unprofiled(problem) for problem in problems]
    results, progress = consoles()
    with progress.status("") as status:
        runs = list(
            compete(
                problems,
                methods,
                range(seeds),
                noise,
                processes,
                lambda done, of: status.update(f"{done} of {of} runs"),
                play=play,
            )
        )
    if output == "json":
        setting = {"trials": trials, "seeds": seeds, "noise": noise, "versions": _versions()}
        print_json({"runs": [vars(run) for run in runs], "summary": summary(runs), "setting": setting})
    else:
        _show(results, runs, trials, read.name, seeds, noise)


def _show(console: Console, runs: Sequence[ServeResult], trials: int, name: str, seeds: int, noise: float) -> None:
    from mlcd_bench.serve import summary

    looked_at = [n for n in (1, 2, 3, 6, 10, 15, 30) if n <= trials]
    table = plain_table(("METHOD",), ("RUNS", *(f"AFTER {n}" for n in looked_at), "WORST", "TRIALS"))
    for row in summary(runs):
        after = [f"{row['accuracy'][n - 1]:.3f}" if row["accuracy"] else "-" for n in looked_at]
        worst = f"{row['worst']:.3f} {row['worst_model']}" if row["accuracy"] else "-"
        table.add_row(row["method"], str(row["runs"]), *after, worst, f"{row['trials']:.1f}")
    console.print(table)
    versions = ", ".join(f"{what} {version}" for what, version in _versions().items())
    note = f"{name}: {len({run.model for run in runs})} unseen models, seeds 0..{seeds - 1}, noise {noise:.0%}. {RULES}"
    console.print(f"{note} {versions}.", style="dim", highlight=False)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from mlcd.core.version import VERSION

    return {"mlcd": VERSION, **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")}}
