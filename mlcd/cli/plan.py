"""mlcd plan: a preview of a search, at no cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from mlcd.cli.console import at_work
from mlcd.cli.options import consoles, output, print_json, with_options
from mlcd.cli.plan_model import NAMES, job_of_model, model_options
from mlcd.cli.plan_table import plans_document, print_plans
from mlcd.cli.planner_options import options_of
from mlcd.cli.remote_runs import submission_of_file
from mlcd.cli.server import chosen_server
from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import open_ledger
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Started
from mlcd.core.planner import added_names, planner_of
from mlcd.core.runs.real_money import costs_real_money, traffic_text
from mlcd.core.runs.run import first_entry, first_probes
from mlcd.core.strategy import Finish, Probe
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.form.jobs import job_with_options
from mlcd.planners.functions.job_from_options import is_on_functions
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.functions.prepare import PlanAhead, plan_ahead
from mlcd.planners.jobfile.read import load_job
from mlcd.planners.modeling.outlook import Outlook, outlook
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.plans.outlook import PlanOutlook
from mlcd.reports.functions.document import plan_document
from mlcd.reports.functions.tables import show_plan
from mlcd.reports.functions.words import decision_sentence
from mlcd.reports.terminal_tables import say_decision
from mlcd.reports.words import amount_words, goal_words
from mlcd.service.remote.requests import preview
from mlcd.service.workers.submissions import SubmissionPreview

MUCH = 0.1
"""The share of a limit above which the first probes get a warning."""
Shown = tuple[dict[str, Any], Callable[[Console], None]]
"""A preview: as a document, and what prints it."""


@click.command()
@click.argument("job_path", metavar="JOB", type=click.Path(path_type=Path), required=False)
@with_options((*options_of("train"), *options_of("tune", "trials", "eta", "epochs_per_stage"), *model_options, output))
def plan(job_path: Path | None, output: str, **chosen: Any) -> int:
    """Show what a search would do, at no cost.

    It shows the configurations, the first probes with their prices, and whether the limits look possible; for a
    language model also the best training plan on each GPU. Options are those of `mlcd train`; on functions also those
    of `mlcd tune`.

    \b
    mlcd plan job.yaml --budget 100
    mlcd plan --model llama/config.json --tokens 300M --adapter lora --goal cheapest
    """
    by_model = job_of_model(job_path, {name: chosen.pop(name) for name in NAMES})
    job, code, server = by_model or load_job(job_path or ""), 0, chosen_server()
    kind = next((name for name in job.blocks if name in added_names()), None) or _kind(job, chosen)
    job = job_with_options(kind, job, chosen, str(job_path))
    # Ask the server now, so that it refuses now what it would refuse later.
    remote = preview(server, submission_of_file(kind, job_path, chosen)) if server is not None and job_path else None
    results, progress = consoles()
    with at_work(progress, "Computing forecasts for all configurations ..."):
        if remote is not None and job.on.startswith("recorded:") and kind not in added_names():
            document, show = _only_remote(job, remote)
        elif isinstance(job.ask, FunctionsTask):
            planned = plan_ahead(job)
            document, show = _on_functions(planned)
            code = 0 if planned.decision.configuration is not None else ExitCode.INFEASIBLE
        else:
            with closing(open_ledger()) as ledger:
                first, _ = first_entry(job, ledger)
            document, show = _on_machines(first) if kind == "train" else _by_added_planner(first)
    if output == "json":
        print_json(document | ({"there": asdict(remote)} if remote is not None else {}))
    else:
        show(results)
        _print_remote_note(results, remote)
    return code


def _kind(job: Job, chosen: Mapping[str, Any]) -> str:
    """The command to preview, train or tune: on functions, `trials` mean `mlcd tune`."""
    tunes = isinstance(job.ask, FunctionsTask) and job.ask.tuning is not None
    trials = chosen.get("trials") is not None or tunes
    return "tune" if is_on_functions(job, chosen) and chosen.get("target_loss") is None and trials else "train"


def _only_remote(job: Job, remote: SubmissionPreview) -> Shown:
    """A recording that only the server has: show what the server says."""
    words = f"{job.name}  {remote.goal_words}"
    return {"job": job.name, "on": job.on}, lambda results: results.print(words, markup=False)


def _by_added_planner(first: Started) -> Shown:
    """The first probes of a planner of another package."""
    job, probes = first.job, first_probes(first)
    expected = planner_of(job).expectation(job, first.space)

    def show(results: Console) -> None:
        results.print(f"{job.name}  {goal_words(job.goal, job.target)}", markup=False)
        results.print(f"{counted(len(first.space), 'configuration')} on {job.on}", markup=False)
        _print_first_probes(results, first, probes)
        if expected:
            results.print(expected, markup=False)

    return _probes_document(first, probes) | {"configurations": len(first.space), "expectation": expected}, show


def _on_functions(planned: PlanAhead) -> Shown:
    """The Pareto boundary and the stage plan, compared with those of other methods."""

    def show(results: Console) -> None:
        show_plan(results, planned.job, planned.decision, planned.boundary)
        say_decision(results, planned.decision, decision_sentence(planned.decision, planned.job))

    return plan_document(planned.job, planned.decision, planned.boundary), show


def _on_machines(first: Started) -> Shown:
    """The machines, the first probes of `mlcd train`, and for a language model the best plan of each GPU."""
    plans = PlanOutlook(first.job, first.space) if planned_training(first.job) is not None else None
    expected = plans.of_space if plans is not None else outlook(first.job, first.space)
    probes = first_probes(first)

    def show(results: Console) -> None:
        _print_space(results, first, expected)
        if plans is not None:
            print_plans(results, plans)
        _print_first_probes(results, first, probes)
        named = replace(expected, modelled=None) if plans is not None else expected  # the table's first row has it
        _print_outlook(results, first.job.goal, named, spot=any(c.markets for c in first.space.choices))

    return _probes_document(first, probes) | asdict(expected) | {
        "smallest": [str(configuration) for configuration in expected.smallest],
        "best": str(expected.best) if expected.best is not None else None,
        "modelled": dict(zip(("seconds", "usd"), expected.modelled, strict=True)) if expected.modelled else None,
        **(plans_document(plans) if plans is not None else {}),
    }, show


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


def _print_space(results: Console, first: Started, expected: Outlook) -> None:
    job = first.job
    results.print(f"[bold]{escape(job.name)}[/bold]  {goal_words(job.goal)}, {amount_words(job)}")
    low, high = min(c.usd_per_hour for c in expected.smallest), max(c.usd_per_hour for c in expected.smallest)
    size = f"{counted(expected.configurations, 'configuration')} of {counted(expected.types, 'type')}"
    price = f"{format_usd(low)} to {format_usd(high)} an hour at their smallest size"
    results.print(f"Space ({first.provenance}): {size}, {price}")


def _print_first_probes(results: Console, first: Started, probes: tuple[Probe, ...] | Finish) -> None:
    """The first probes, their prices and reasons; and the cost limit of a probe."""
    if isinstance(probes, Finish):
        results.print(f"Nothing would be probed: {probes.because}", markup=False)
        return
    for probe in probes:
        seconds, usd = first.space.worst_probe(probe.configuration)
        price = f"at most {format_usd(usd)} and {format_duration(seconds)}"
        results.print(f"First probe: {probe.configuration}, {price}: {probe.because}", markup=False)
    if (most := first.job.search.max_probe_usd) is not None:
        results.print(f"No probe costs more than {format_usd(most)} (max_probe)")
    if costs_real_money(first.job.on):
        results.print(traffic_text(first.job), markup=False)


def _print_outlook(results: Console, goal: Goal, expected: Outlook, *, spot: bool) -> None:
    """`spot`: whether the job may be rented on spot markets, too."""
    one_each = f"at most {format_usd(expected.smallest_usd)} and {format_duration(expected.smallest_s)}"
    results.print(f"One probe of each type, at its smallest size, would take {one_each} (HeterBO starts like that)")
    budget, deadline = goal.budget_usd, goal.deadline_s
    if (budget and expected.smallest_usd > MUCH * budget) or (deadline and expected.smallest_s > MUCH * deadline):
        words = "  that is a large part of the limit; search fewer types (--instances) to keep more for the job"
        results.print(words, style="yellow")
    if expected.best is not None and expected.modelled is not None:
        seconds, usd = expected.modelled
        took = f"{format_duration(seconds)} and {format_usd(usd)}{' on demand' if spot else ''}"
        results.print(f"Best forecast, from published rates, not measured: {took} on {expected.best}")
    chance = f"[bold]{expected.chance}[/bold]; " if goal.limited else ""
    results.print(f"Within the limit: {chance}{expected.because}")


def _print_remote_note(results: Console, remote: SubmissionPreview | None) -> None:
    """Print the server's preview, if there is one, and that nothing was spent."""
    if remote is not None:
        types = counted(len(remote.types), "type")
        known = remote.configurations is not None
        space = f", {counted(remote.configurations or 0, 'configuration')} of {types}" if known else ""
        left = f"; you have {format_usd(remote.left_usd)} left" if remote.left_usd is not None else ""
        fits = remote.left_usd is None or (remote.budget_usd is not None and remote.budget_usd <= remote.left_usd)
        results.print(f"On the server: {remote.on}{space}{left}", markup=False)
        if not fits:
            most = format_usd(remote.left_usd or 0.0)
            words = f"the server would refuse it: set --budget to at most {most}, or ask an admin for more"
            results.print(f"  {words}", style="yellow", markup=False)
    results.print("Nothing was spent.", style="dim")
