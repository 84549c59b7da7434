"""mlcd bench serve on recorded engines: options, table and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, print_json
from mlcd_bench.cli.names import split_names

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd_bench.serve import EngineFolder, EngineRun

RULES = (
    "Share: tokens per dollar of the row chosen so far over those of the best row that keeps the caps, 0 while none is "
    "chosen; the mean over problems (model, lengths, caps) and seeds. Worst: the model with the smallest final mean. "
    "Each model is hidden with all its workloads."
)


@dataclass(frozen=True)
class Contest:
    """The options of a comparison. `one_by_one`: each model is hidden alone, otherwise all of `unseen` at once."""

    folder: EngineFolder
    unseen: Sequence[str]
    one_by_one: bool
    method: str
    trials: int | None
    seeds: int | None
    sweeps: bool


def hold(contest: Contest, processes: int, output: str) -> None:
    """Make the comparison and show the results."""
    from mlcd_bench.serve import compete, engine_problems, engine_summary, play_engines
    from mlcd_bench.serve.engines import SEEDS, TRIALS

    trials, seeds = contest.trials or TRIALS, contest.seeds or SEEDS
    methods, left_out = _methods(contest.method)
    folder = contest.folder.swept() if contest.sweeps else contest.folder
    problems = engine_problems(folder, contest.unseen, trials, one_by_one=contest.one_by_one)
    results, progress = consoles()
    if left_out:
        progress.print(f"left out, not installed: {', '.join(left_out)}", style="dim", highlight=False)
    with progress.status("") as status:
        runs = list(
            compete(
                problems,
                methods,
                range(seeds),
                0.0,
                processes,
                lambda done, of: status.update(f"{done} of {of} runs"),
                play=play_engines,
            )
        )
    if output == "json":
        setting = {"trials": trials, "seeds": seeds, "sweeps": contest.sweeps, "left_out": left_out}
        print_json({"runs": [vars(run) for run in runs], "summary": engine_summary(runs, trials), "setting": setting})
    else:
        _show(results, runs, trials, f"{folder.name}: {len(problems)} problems, seeds 0..{seeds - 1}.")


def _methods(written: str) -> tuple[list[str], list[str]]:
    """The methods to run, and those of `all` that are left out because a package is not installed."""
    from mlcd_bench.baselines.serve import aiconfigurator
    from mlcd_bench.serve.engines import METHODS

    names = split_names("method", written, METHODS)
    if aiconfigurator.NAME not in names or aiconfigurator.is_installed():
        return names, []
    if written != "all":
        raise aiconfigurator.not_installed()
    return [name for name in names if name != aiconfigurator.NAME], [aiconfigurator.NAME]


def _show(console: Console, runs: Sequence[EngineRun], trials: int, setting: str) -> None:
    from mlcd_bench.serve import engine_summary
    from mlcd_bench.serve.engines import SHOWN_AFTER

    looks = [n for n in SHOWN_AFTER if n <= trials] or [trials]
    rows = engine_summary(runs, trials)
    table = plain_table(("METHOD", "CAPS"), ("RUNS", *(f"AFTER {n}" for n in looks), "WORST", "TRIALS"))
    for row in rows:
        worst = f"{row['worst']:.3f} {row['worst_model']}"
        table.add_row(row["method"], "all", str(row["runs"]), *_at(row["share"], looks), worst, f"{row['trials']:.1f}")
    for caps in dict.fromkeys(caps for row in rows for caps in row["by_caps"]):
        for row in rows:
            table.add_row(row["method"], caps, "", *_at(row["by_caps"][caps], looks), "", "")
    console.print(table)
    console.print(f"{setting} {RULES}", style="dim", highlight=False)


def _at(share: Sequence[float], looks: Sequence[int]) -> list[str]:
    return [f"{share[n - 1]:.3f}" for n in looks]
