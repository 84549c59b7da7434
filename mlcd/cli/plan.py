"""mlcd plan: what a search would face, before a cent is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.ending import INFEASIBLE
from mlcd.cli.functions import allocation_options, target_loss, tuning_options
from mlcd.cli.options import consoles, job_file, job_options, output, print_json, read_job, with_options

if TYPE_CHECKING:
    from mlcd.job import Job
    from mlcd.strategy import Step

MUCH = 0.1
"""The share of a limit above which the first probes deserve a warning."""


@click.command()
@job_file
@with_options((*job_options, target_loss, *tuning_options, *allocation_options))
@output
@click.option("--to", "page", type=click.Path(path_type=Path, dir_okay=False), help="On functions: a picture, as SVG.")
def plan(job_path: Path, output: str, page: Path | None, **chosen: Any) -> int:
    """Before a cent is spent: the space, the likely spend, whether the limit looks possible."""
    from mlcd.asked import is_on_functions
    from mlcd.jobfile import load_job

    job = load_job(job_path)
    if is_on_functions(job, chosen):
        tunes = chosen.get("trials") is not None or (job.serverless is not None and job.serverless.tuning is not None)
        tunes &= chosen.get("target_loss") is None
        return _on_functions(read_job("tune" if tunes else "train", job_path, chosen), output, page)
    _on_machines(job_path, output, chosen)
    return 0


def _on_functions(job: Job, output: str, page: Path | None) -> int:
    """The boundary and the stage plan, beside those of other methods."""
    from mlcd.assemble import plan_ahead
    from mlcd.errors import UserError
    from mlcd.reports.serverless.document import plan_document
    from mlcd.reports.serverless.picture import plan_picture
    from mlcd.reports.serverless.terminal import say_decision, show_plan

    ahead = plan_ahead(job)
    if page is not None:
        try:
            page.write_text(plan_picture(ahead.decision, ahead.boundary), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{page}: cannot be written: {error.strerror}; choose another with --to") from error
    if output == "json":
        print_json(plan_document(ahead.job, ahead.decision, ahead.boundary))
    else:
        results, _ = consoles()
        show_plan(results, ahead.job, ahead.decision, ahead.boundary)
        say_decision(results, ahead.job, ahead.decision)
        results.print("Nothing was spent.", style="dim")
    return 0 if ahead.decision.configuration is not None else INFEASIBLE


def _on_machines(job_path: Path, output: str, chosen: dict[str, Any]) -> None:
    """The space of machines, and how the search would begin."""
    from rich.markup import escape

    from mlcd.assemble import cloud, method
    from mlcd.history import History
    from mlcd.planners.train import outlook
    from mlcd.reports.words import goal_words
    from mlcd.units import format_count, format_duration, format_usd

    job = read_job("train", job_path, chosen)
    strategy = method(job.search)
    place = cloud(job.on, job)
    seen = outlook(job, place.space)
    first = strategy.next_step(job, place.space, History())
    if output == "json":
        document = asdict(seen)
        document["first_probes"] = [str(configuration) for configuration in seen.first_probes]
        document["best"] = str(seen.best) if seen.best is not None else None
        document["modelled"] = dict(zip(("seconds", "usd"), seen.modelled, strict=True)) if seen.modelled else None
        print_json({"job": job.name, "on": job.on, "method": job.search.method, **document})
        return
    results, _ = consoles()
    say = results.print
    say(
        f"[bold]{escape(job.name)}[/bold]  {goal_words(job.goal)}, {format_count(job.work_samples)} samples",
        highlight=False,
    )
    low, high = min(c.usd_per_hour for c in seen.first_probes), max(c.usd_per_hour for c in seen.first_probes)
    say(
        f"Space ({place.provenance}): {seen.configurations} configurations of {seen.types} types, "
        f"{format_usd(low)} to {format_usd(high)} an hour at their smallest size",
        highlight=False,
    )
    _say_first_step(say, first)
    one_each = f"at most {format_usd(seen.first_usd)} and {format_duration(seen.first_s)}"
    say(f"One probe of each type, at its smallest size, would take {one_each}; HeterBO begins so", highlight=False)
    budget, deadline = job.goal.budget_usd, job.goal.deadline_s
    if (budget and seen.first_usd > MUCH * budget) or (deadline and seen.first_s > MUCH * deadline):
        say("  [yellow]that is much of the limit: fewer types (`--instances`) leave more to run the job[/yellow]")
    if seen.best is not None and seen.modelled is not None:
        seconds, usd = seen.modelled
        say(
            f"Modelled from published rates, not measured: {format_duration(seconds)} and {format_usd(usd)} "
            f"on {seen.best}",
            highlight=False,
        )
    say(f"Within the limit: [bold]{seen.chance}[/bold]; {seen.because}", highlight=False)
    say("Nothing was spent.", style="dim")


def _say_first_step(say: Callable[..., None], step: Step) -> None:
    """What the search would do first, and why."""
    from mlcd.strategy import Finish, Probe, Round

    if isinstance(step, Finish):
        say(f"Nothing would be probed: {step.because}", highlight=False)
    elif isinstance(step, Probe | Round):
        probes = step.probes if isinstance(step, Round) else (step,)
        for probe in probes:
            say(f"First: {probe.configuration}, {probe.because}", highlight=False, markup=False)
