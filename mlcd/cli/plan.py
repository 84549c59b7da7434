"""mlcd plan: a preview of a search, at no cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.functions import allocation_options, target_loss, tuning_options
from mlcd.cli.messages import INFEASIBLE
from mlcd.cli.options import consoles, job_file, job_options, output, print_json, read_job, with_options
from mlcd.cli.server import chosen_server
from mlcd.cli.submissions import submission_of_file

if TYPE_CHECKING:
    from mlcd.core.job import Goal, Job
    from mlcd.core.ledger import Started
    from mlcd.core.strategy import Finish, Probe
    from mlcd.planners.modeling.outlook import Outlook
    from mlcd.service.remote.requests import Preview

MUCH = 0.1
"""The share of a limit above which the first probes get a warning."""


@click.command()
@job_file
@with_options((*job_options, target_loss, *tuning_options, *allocation_options))
@output
def plan(job_path: Path, output: str, **chosen: Any) -> int:
    """Preview a search, at no cost.

    The space, and whether the limits look possible. Options as of `mlcd train`; on functions as
    of `mlcd tune`, too.

    \b
    mlcd plan job.yaml --budget 100
    """
    from mlcd.core.planner import added_names
    from mlcd.planners.functions.form import is_on_functions
    from mlcd.planners.functions.nouns import FunctionsTask
    from mlcd.planners.jobfile.read import load_job

    job = load_job(job_path)
    if (added := next((name for name in job.blocks if name in added_names()), None)) is not None:
        return _by_added_planner(added, job_path, chosen, output)
    on_functions, kind = is_on_functions(job, chosen), "train"
    if on_functions and chosen.get("target_loss") is None:
        tunes = chosen.get("trials") is not None or (isinstance(job.ask, FunctionsTask) and job.ask.tuning is not None)
        kind = "tune" if tunes else "train"
    job, remote = read_job(kind, job_path, chosen), _remote_preview(kind, job_path, chosen)
    if remote is not None and job.on.startswith("recorded:"):
        _print_remote(job, remote, output)
        return 0
    if on_functions:
        return _on_functions(job, output, remote)
    _on_machines(job, output, remote)
    return 0


def _by_added_planner(name: str, job_path: Path, chosen: Mapping[str, Any], output: str) -> int:
    """What a planner of another package would try first."""
    from mlcd.core.home import open_ledger
    from mlcd.core.planner import planner_named
    from mlcd.core.runs.run import beginning, first_probes
    from mlcd.core.units import counted
    from mlcd.reports.words import goal_words

    job, remote = read_job(name, job_path, chosen), _remote_preview(name, job_path, chosen)
    with closing(open_ledger()) as ledger:
        first, _ = beginning(job, ledger)
    probes, expected = first_probes(first), planner_named(name).expectation(first.job, first.space)
    if output == "json":
        facts = {"configurations": len(first.space), "expectation": expected}
        print_json(_probes_document(first, probes) | facts | _document(remote))
        return 0
    write = consoles()[0].print
    write(f"{job.name}  {goal_words(job.goal, job.target)}", highlight=False, markup=False)
    write(f"{counted(len(first.space), 'configuration')} on {first.job.on}", highlight=False, markup=False)
    _print_first_probes(write, first, probes)
    if expected:
        write(expected, highlight=False, markup=False)
    _print_remote_note(write, remote)
    return 0


def _on_functions(job: Job, output: str, remote: Preview | None) -> int:
    """The boundary and the stage plan, compared with those of other methods."""
    from mlcd.planners.functions.prepare import plan_ahead
    from mlcd.reports.functions.document import plan_document
    from mlcd.reports.functions.tables import say_decision, show_plan

    planned = plan_ahead(job)
    if output == "json":
        print_json(plan_document(planned.job, planned.decision, planned.boundary) | _document(remote))
    else:
        results, _ = consoles()
        show_plan(results, planned.job, planned.decision, planned.boundary)
        say_decision(results, planned.job, planned.decision)
        _print_remote_note(results.print, remote)
    return 0 if planned.decision.configuration is not None else INFEASIBLE


def _on_machines(job: Job, output: str, remote: Preview | None) -> None:
    """The space of machines, and the first probes that `mlcd train` would make."""
    from mlcd.core.home import open_ledger
    from mlcd.core.runs.run import beginning, first_probes
    from mlcd.planners.modeling.outlook import outlook

    with closing(open_ledger()) as ledger:
        first, _ = beginning(job, ledger)
    expected, probes = outlook(first.job, first.space), first_probes(first)
    if output == "json":
        print_json(_machines_document(first, expected, probes) | _document(remote))
        return
    write = consoles()[0].print
    _print_space(write, first, expected)
    _print_first_probes(write, first, probes)
    _print_outlook(write, first.job.goal, expected)
    _print_remote_note(write, remote)


def _machines_document(first: Started, expected: Outlook, probes: tuple[Probe, ...] | Finish) -> dict[str, Any]:
    document = asdict(expected)
    document["smallest"] = [str(configuration) for configuration in expected.smallest]
    document["best"] = str(expected.best) if expected.best is not None else None
    document["modelled"] = dict(zip(("seconds", "usd"), expected.modelled, strict=True)) if expected.modelled else None
    facts = _probes_document(first, probes)
    return facts | document


def _probes_document(first: Started, probes: tuple[Probe, ...] | Finish) -> dict[str, Any]:
    job, space = first.job, first.space
    return {
        "job": job.name,
        "on": job.on,
        "method": job.search.method,
        "max_probe_usd": job.search.max_probe_usd,
        "max_hourly_usd": job.search.max_hourly_usd,
        "first_probes": [
            {
                "configuration": str(probe.configuration),
                **dict(zip(("worst_s", "worst_usd"), space.worst_probe(probe.configuration), strict=True)),
                "because": probe.because,
            }
            for probe in (probes if isinstance(probes, tuple) else ())
        ],
    }


def _print_space(write: Callable[..., None], first: Started, expected: Outlook) -> None:
    from rich.markup import escape

    from mlcd.core.units import counted, format_count, format_usd
    from mlcd.reports.words import goal_words

    job = first.job
    write(
        f"[bold]{escape(job.name)}[/bold]  {goal_words(job.goal)}, {format_count(job.work_samples)} samples",
        highlight=False,
    )
    low, high = min(c.usd_per_hour for c in expected.smallest), max(c.usd_per_hour for c in expected.smallest)
    size = f"{counted(expected.configurations, 'configuration')} of {counted(expected.types, 'type')}"
    write(
        f"Space ({first.provenance}): {size}, {format_usd(low)} to {format_usd(high)} an hour at their smallest size",
        highlight=False,
    )


def _print_first_probes(write: Callable[..., None], first: Started, probes: tuple[Probe, ...] | Finish) -> None:
    """The first probes, their prices and reasons; and the cost limit of a probe."""
    from mlcd.core.strategy import Finish
    from mlcd.core.units import format_duration, format_usd

    if isinstance(probes, Finish):
        write(f"Nothing would be probed: {probes.because}", highlight=False, markup=False)
        return
    for probe in probes:
        seconds, usd = first.space.worst_probe(probe.configuration)
        price = f"at most {format_usd(usd)} and {format_duration(seconds)}"
        write(f"First: {probe.configuration}, {price}: {probe.because}", highlight=False, markup=False)
    if (most := first.job.search.max_probe_usd) is not None:
        write(f"No probe costs more than {format_usd(most)} (max_probe)", highlight=False)


def _print_outlook(write: Callable[..., None], goal: Goal, expected: Outlook) -> None:
    from mlcd.core.units import format_duration, format_usd

    one_each = f"at most {format_usd(expected.smallest_usd)} and {format_duration(expected.smallest_s)}"
    write(f"One probe of each type, at its smallest size, would take {one_each}; HeterBO begins so", highlight=False)
    budget, deadline = goal.budget_usd, goal.deadline_s
    if (budget and expected.smallest_usd > MUCH * budget) or (deadline and expected.smallest_s > MUCH * deadline):
        write("  [yellow]that is much of the limit: fewer types (`--instances`) leave more to run the job[/yellow]")
    if expected.best is not None and expected.modelled is not None:
        seconds, usd = expected.modelled
        write(
            f"Modelled from published rates, not measured: {format_duration(seconds)} and {format_usd(usd)} "
            f"on {expected.best}",
            highlight=False,
        )
    write(f"Within the limit: [bold]{expected.chance}[/bold]; {expected.because}", highlight=False)


def _print_remote(job: Job, remote: Preview, output: str) -> None:
    """On a recording that only the server has."""
    if output == "json":
        print_json({"job": job.name, "on": job.on, **_document(remote)})
        return
    write = consoles()[0].print
    write(f"{job.name}  {remote.goal_words}", highlight=False, markup=False)
    _print_remote_note(write, remote)


def _remote_preview(kind: str, job_path: Path, chosen: Mapping[str, Any]) -> Preview | None:
    """The chosen server's preview; it refuses now what it would refuse later."""
    if (server := chosen_server()) is None:
        return None
    from mlcd.service.remote.requests import preview

    return preview(server, submission_of_file(kind, job_path, chosen))


def _document(remote: Preview | None) -> dict[str, Any]:
    return {"there": asdict(remote)} if remote is not None else {}


def _print_remote_note(write: Callable[..., None], remote: Preview | None) -> None:
    """Print the server's preview, if there is one, and that nothing was spent."""
    from mlcd.core.units import counted, format_usd

    if remote is not None:
        count = remote.configurations
        space = (
            f", {counted(count, 'configuration')} of {counted(len(remote.types), 'type')}" if count is not None else ""
        )
        left = f"; you have {format_usd(remote.left_usd)} left" if remote.left_usd is not None else ""
        fits = remote.left_usd is None or (remote.budget_usd is not None and remote.budget_usd <= remote.left_usd)
        write(f"On the server: {remote.on}{space}{left}", highlight=False, markup=False)
        if not fits:
            write("  [yellow]it would be refused: state a budget that is not more, or ask an admin[/yellow]")
    write("Nothing was spent.", style="dim")
