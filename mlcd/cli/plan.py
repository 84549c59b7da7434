"""mlcd plan: what a search would face, before a cent is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.ending import INFEASIBLE
from mlcd.cli.functions import allocation_options, target_loss, tuning_options
from mlcd.cli.options import consoles, job_file, job_options, output, print_json, read_job, with_options
from mlcd.cli.orders import order_of_file
from mlcd.cli.server import asked_server
from mlcd.planners.functions.nouns import FunctionsTask

if TYPE_CHECKING:
    from mlcd.core.job import Goal, Job
    from mlcd.core.ledger import Started
    from mlcd.core.strategy import Finish, Probe
    from mlcd.planners.train.outlook import Outlook
    from mlcd.service.remote.orders import Foreseen

MUCH = 0.1
"""The share of a limit above which the first probes deserve a warning."""


@click.command()
@job_file
@with_options((*job_options, target_loss, *tuning_options, *allocation_options))
@output
@click.option("--to", "page", type=click.Path(path_type=Path, dir_okay=False), help="On functions: a picture, as SVG.")
def plan(job_path: Path, output: str, page: Path | None, **chosen: Any) -> int:
    """What a search would face, before a cent is spent.

    The space, and whether the limits look possible. Options as of `mlcd train`; on functions as
    of `mlcd tune`, too.

    \b
    mlcd plan job.yaml --budget 100
    """
    from mlcd.planners.form import is_on_functions
    from mlcd.planners.jobfile.read import load_job

    job = load_job(job_path)
    on_functions, kind = is_on_functions(job, chosen), "train"
    if on_functions and chosen.get("target_loss") is None:
        tunes = chosen.get("trials") is not None or (isinstance(job.ask, FunctionsTask) and job.ask.tuning is not None)
        kind = "tune" if tunes else "train"
    job, there = read_job(kind, job_path, chosen), _foreseen(kind, job_path, chosen)
    if there is not None and job.on.startswith("recorded:"):
        _only_there(job, there, output)
        return 0
    if on_functions:
        return _on_functions(job, output, page, there)
    _on_machines(job, output, there)
    return 0


def _on_functions(job: Job, output: str, page: Path | None, there: Foreseen | None) -> int:
    """The boundary and the stage plan, beside those of other methods."""
    from mlcd.core.errors import UserError
    from mlcd.planners.functions.prepare import plan_ahead
    from mlcd.reports.functions.document import plan_document
    from mlcd.reports.functions.picture import plan_picture
    from mlcd.reports.functions.terminal import say_decision, show_plan

    ahead = plan_ahead(job)
    if page is not None:
        try:
            page.write_text(plan_picture(ahead.decision, ahead.boundary), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{page}: cannot be written: {error.strerror}; choose another with --to") from error
    if output == "json":
        print_json(plan_document(ahead.job, ahead.decision, ahead.boundary) | _document(there))
    else:
        results, _ = consoles()
        show_plan(results, ahead.job, ahead.decision, ahead.boundary)
        say_decision(results, ahead.job, ahead.decision)
        _say_the_rest(results.print, there)
    return 0 if ahead.decision.configuration is not None else INFEASIBLE


def _on_machines(job: Job, output: str, there: Foreseen | None) -> None:
    """The space of machines, and how the search would begin: as `mlcd train` would, and without a launch."""
    from mlcd.core.home import open_ledger
    from mlcd.core.runs.run import beginning, first_probes
    from mlcd.planners.train.outlook import outlook

    with closing(open_ledger()) as ledger:
        first, _ = beginning(job, ledger)
    seen, probes = outlook(first.job, first.space), first_probes(first)
    if output == "json":
        print_json(_machines_document(first, seen, probes) | _document(there))
        return
    say = consoles()[0].print
    _say_space(say, first, seen)
    _say_first_probes(say, first, probes)
    _say_outlook(say, first.job.goal, seen)
    _say_the_rest(say, there)


def _machines_document(first: Started, seen: Outlook, probes: tuple[Probe, ...] | Finish) -> dict[str, Any]:
    document = asdict(seen)
    document["smallest"] = [str(configuration) for configuration in seen.smallest]
    document["best"] = str(seen.best) if seen.best is not None else None
    document["modelled"] = dict(zip(("seconds", "usd"), seen.modelled, strict=True)) if seen.modelled else None
    job, space = first.job, first.space
    document["first_probes"] = [
        {
            "configuration": str(probe.configuration),
            **dict(zip(("worst_s", "worst_usd"), space.worst_probe(probe.configuration), strict=True)),
            "because": probe.because,
        }
        for probe in (probes if isinstance(probes, tuple) else ())
    ]
    limits = {"max_probe_usd": job.search.max_probe_usd, "max_hourly_usd": job.search.max_hourly_usd}
    return {"job": job.name, "on": job.on, "method": job.search.method, **limits, **document}


def _say_space(say: Callable[..., None], first: Started, seen: Outlook) -> None:
    from rich.markup import escape

    from mlcd.core.units import counted, format_count, format_usd
    from mlcd.reports.words import goal_words

    job = first.job
    say(
        f"[bold]{escape(job.name)}[/bold]  {goal_words(job.goal)}, {format_count(job.work_samples)} samples",
        highlight=False,
    )
    low, high = min(c.usd_per_hour for c in seen.smallest), max(c.usd_per_hour for c in seen.smallest)
    size = f"{counted(seen.configurations, 'configuration')} of {counted(seen.types, 'type')}"
    say(
        f"Space ({first.provenance}): {size}, {format_usd(low)} to {format_usd(high)} an hour at their smallest size",
        highlight=False,
    )


def _say_first_probes(say: Callable[..., None], first: Started, probes: tuple[Probe, ...] | Finish) -> None:
    """What the search would do first, at which price, and why; and what no probe may cost more than."""
    from mlcd.core.strategy import Finish
    from mlcd.core.units import format_duration, format_usd

    if isinstance(probes, Finish):
        say(f"Nothing would be probed: {probes.because}", highlight=False, markup=False)
        return
    for probe in probes:
        seconds, usd = first.space.worst_probe(probe.configuration)
        price = f"at most {format_usd(usd)} and {format_duration(seconds)}"
        say(f"First: {probe.configuration}, {price}: {probe.because}", highlight=False, markup=False)
    if (most := first.job.search.max_probe_usd) is not None:
        say(f"No probe costs more than {format_usd(most)} (max_probe)", highlight=False)


def _say_outlook(say: Callable[..., None], goal: Goal, seen: Outlook) -> None:
    from mlcd.core.units import format_duration, format_usd

    one_each = f"at most {format_usd(seen.smallest_usd)} and {format_duration(seen.smallest_s)}"
    say(f"One probe of each type, at its smallest size, would take {one_each}; HeterBO begins so", highlight=False)
    budget, deadline = goal.budget_usd, goal.deadline_s
    if (budget and seen.smallest_usd > MUCH * budget) or (deadline and seen.smallest_s > MUCH * deadline):
        say("  [yellow]that is much of the limit: fewer types (`--instances`) leave more to run the job[/yellow]")
    if seen.best is not None and seen.modelled is not None:
        seconds, usd = seen.modelled
        say(
            f"Modelled from published rates, not measured: {format_duration(seconds)} and {format_usd(usd)} "
            f"on {seen.best}",
            highlight=False,
        )
    say(f"Within the limit: [bold]{seen.chance}[/bold]; {seen.because}", highlight=False)


def _only_there(job: Job, there: Foreseen, output: str) -> None:
    """At a recording that the server has, and this machine has not."""
    if output == "json":
        print_json({"job": job.name, "on": job.on, **_document(there)})
        return
    say = consoles()[0].print
    say(f"{job.name}  {there.goal_words}", highlight=False, markup=False)
    _say_the_rest(say, there)


def _foreseen(kind: str, job_path: Path, chosen: Mapping[str, Any]) -> Foreseen | None:
    """What the server that was named would run; what it would refuse, it refuses now."""
    if (server := asked_server()) is None:
        return None
    from mlcd.service.remote.orders import foresee

    return foresee(server, order_of_file(kind, job_path, chosen))


def _document(there: Foreseen | None) -> dict[str, Any]:
    return {"there": asdict(there)} if there is not None else {}


def _say_the_rest(say: Callable[..., None], there: Foreseen | None) -> None:
    """What a server says to it, if one was asked, and that nothing has happened."""
    from mlcd.core.units import counted, format_usd

    if there is not None:
        many = there.configurations
        space = f", {counted(many, 'configuration')} of {counted(len(there.types), 'type')}" if many is not None else ""
        left = f"; you have {format_usd(there.left_usd)} left" if there.left_usd is not None else ""
        fits = there.left_usd is None or (there.budget_usd is not None and there.budget_usd <= there.left_usd)
        say(f"There: on {there.on}{space}{left}", highlight=False, markup=False)
        if not fits:
            say("  [yellow]it would be refused: state a budget that is not more, or ask an admin[/yellow]")
    say("Nothing was spent.", style="dim")
