"""mlcd bench paper: rerun the HeterBO paper's experiments on the simulated cloud."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from mlcd_bench.paper import Outcome, Study, Unit
    from mlcd_bench.paper.conduct import Standing, Trace

RULES = (
    "MEASURED: median over the seeds (10th to 90th percentile), on the simulated cloud; the seed also draws the cloud. "
    "holds: at least the paper's number, or every run. smaller: the same direction, but less. in part: half of the "
    "runs or more. nearly: within 10 % of the optimum. CHOSE: runs that ended with a configuration; the others could "
    "certify none. OVER: runs over their limit. OPT: training on the choice over training at the optimum. The paper's "
    "cloud differs from this one: compare ratios, not dollars and hours."
)


@click.command()
@click.argument("study", required=False)
@click.option("--seeds", default=None, type=click.IntRange(1, 10_000), help="How many seeds; each study has its own.")
@output
def paper(study: str | None, seeds: int | None, output: str) -> None:
    """Rerun the HeterBO paper's experiments.

    The paper's claims are shown next to our measurements. STUDY is a name, a figure such as fig-9, or all; without one,
    the studies are listed.

    \b
    mlcd bench paper fig-9
    """
    from mlcd_bench.paper import STUDIES, find

    results, progress = consoles()
    if study is None:
        _list(results, list(STUDIES.values()), output)
        return
    selected = find(study)
    documents = []
    for outcome in _played(selected, seeds, progress):
        documents.append(outcome.document())
        if output != "json":
            _show(results, outcome)
    if output == "json":
        from mlcd.core.version import VERSION

        print_json({"version": VERSION, "studies": documents})
    else:
        results.print(RULES, style="dim", highlight=False)


def _played(studies: Sequence[Study], seeds: int | None, progress: Console) -> Iterator[Outcome]:
    from rich.progress import track

    from mlcd_bench.paper import conclude, play, size

    for study in studies:
        many = seeds or study.seeds
        live, total = progress.is_terminal, size(study, many)
        if not live:
            progress.print(f"{study.name}: {total} runs", highlight=False)
        runs = track(play(study, many), study.name, total, console=progress, transient=True, disable=not live)
        yield conclude(study, many, list(runs))


def _list(console: Console, studies: Sequence[Study], output: str) -> None:
    if output == "json":
        rows = [{"study": s.name, "figures": list(s.figures), "title": s.title, "seeds": s.seeds} for s in studies]
        print_json({"studies": rows})
        return
    table = plain_table(("STUDY", "FIGURES", "WHAT"), ("SEEDS",))
    for study in studies:
        table.add_row(study.name, study.where, study.title, str(study.seeds))
    console.print(table)
    console.print("Run one with: mlcd bench paper STUDY (a name, a figure such as fig-9, or all)", style="dim")


def _show(console: Console, outcome: Outcome) -> None:
    study = outcome.study
    console.print(f"\n[bold]{study.name}[/bold]  {study.where}: {study.title}", highlight=False)
    console.print(f"Paper: {study.paper}", style="dim", highlight=False, markup=False)
    console.print(f"Here: {study.ours} Seeds 0..{outcome.seeds - 1}.\n", style="dim", highlight=False, markup=False)
    console.print(_claims(outcome))
    console.print()
    console.print(_standings(outcome.standings))
    for trace in outcome.traces:
        _walk(console, trace)
    console.print()


def _claims(outcome: Outcome) -> Table:
    from rich.markup import escape

    table = plain_table(("FIGURE",), ())
    table.add_column("THE PAPER SAYS", max_width=58)
    for column in ("PAPER", "OF WHOM"):
        table.add_column(column, no_wrap=True)
    table.add_column("MEASURED", justify="right", no_wrap=True)
    table.add_column("P10..P90", justify="right", no_wrap=True)
    table.add_column("VERDICT", no_wrap=True)
    last = None
    for finding in outcome.findings:
        claim, measured = finding.claim, finding.measured
        new = claim is not last
        ends = [_number(end, claim.unit) for end in (measured.low, measured.high)]
        table.add_row(
            claim.figure if new else "",
            escape(claim.says) if new else "",
            claim.short if new else "",
            finding.who,
            _number(measured.value, claim.unit),
            "" if ends == ["-", "-"] else "..".join(ends),
            str(measured.verdict),
        )
        last = claim
    return table


def _standings(standings: Sequence[Standing]) -> Table:
    table = plain_table(("CASE", "METHOD"), ("RUNS", "CHOSE", "OVER", "PROBES", "PROBING", "", "TOTAL", "", "OPT"))
    for i, row in enumerate(standings):
        more = i + 1 < len(standings)
        table.add_row(
            row.case,
            row.entrant,
            str(row.runs),
            str(row.chose),
            str(row.over),
            _plain(row.probes, "{:.0f}"),
            _plain(row.probing_hours, "{:.2f} h"),
            _plain(row.probing_usd, "${:,.2f}"),
            _plain(row.total_hours and row.total_hours[1], "{:.2f} h"),
            _plain(row.total_usd and row.total_usd[1], "${:,.2f}"),
            _plain(row.training_over_optimum, "{:.2f}"),
            end_section=more and standings[i + 1].case != row.case,
        )
    return table


def _walk(console: Console, trace: Trace) -> None:
    """Print a search step by step."""
    table = plain_table((), ("#",))
    table.add_column("PROBE", no_wrap=True)
    for column in ("SAMPLES/S", "HOURS", "COST", "SPENT"):
        table.add_column(column, justify="right", no_wrap=True)
    spent = 0.0
    for i, step in enumerate(trace.steps, start=1):
        spent += step.usd
        rate = "out of memory" if step.samples_per_s is None else f"{step.samples_per_s:,.1f}"
        place = f"{step.nodes} x {step.instance_type}"
        table.add_row(str(i), place, rate, f"{step.hours:.2f}", f"${step.usd:.2f}", f"${spent:.2f}")
    chosen = "nothing" if trace.chosen is None else f"{trace.chosen[1]} x {trace.chosen[0]}"
    console.print(f"\n{trace.case}: {trace.entrant}, seed 0", style="bold", highlight=False)
    console.print(table)
    console.print(f"chose {chosen}; the optimum is {trace.optimum[1]} x {trace.optimum[0]}", highlight=False)


def _number(value: float | None, unit: Unit) -> str:
    if value is None:
        return "-"
    if unit == "times" and not value:
        return "no choice"
    return {"times": f"{value:.2f}x", "share": f"{value:.0%}", "count": f"{value:.0f}"}[unit]


def _plain(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
