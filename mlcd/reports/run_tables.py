"""All tables of a run, as the API returns them: those at the top of its page first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mlcd.core.ledger import Line
from mlcd.planners.functions.nouns import FunctionsTask, Tuning
from mlcd.planners.scale.nouns import ScalingTask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.curve import Curve, curve_table
from mlcd.reports.functions import page as functions_page
from mlcd.reports.serve import page as serve_page
from mlcd.reports.story import Story
from mlcd.reports.tables import Table, final_run, measured
from mlcd.reports.view.summary import place_words

MEANING = {
    "simulated": "Simulated: these numbers come from a model of a cloud. They are not measurements.",
    "recorded": "Recorded: these numbers replay measurements made earlier; nothing was rented for this run.",
    "live": "Real: these numbers were measured on machines rented for this run.",
}


def run_tables(lines: Sequence[Line]) -> dict[str, Any]:
    """All tables, from all entries of a run."""
    story = Story.of(lines)
    return {"run": story.run, "tables": [_document(table) for table in (*_tables(story), about(story))]}


def _tables(story: Story) -> list[Table]:
    match story.job.ask:
        case ServingTask():
            return [*serve_page.requirements(story), *serve_page.levels(story), *serve_page.trials(story)]
        case FunctionsTask():
            planned, ran = functions_page.plans(story), functions_page.ran(story)
            return [*final_run(story), *planned, *ran, *functions_page.calibrated(story)]
    curve = Curve.of(story)
    return [*final_run(story), *([curve_table(curve)] if curve is not None else []), *measured(story)]


def _document(table: Table) -> dict[str, Any]:
    return asdict(table) | {"columns": [{"name": name, "number": kind == "num"} for name, kind in table.columns]}


def about(story: Story) -> Table:
    """Version, method, seed and place of the run, why its search ended, and the command to repeat it."""
    started, search, decision = story.started, story.job.search, story.decision
    rows = [
        ("MLCD", started.version),
        ("Method", search.method),
        ("Seed", str(search.seed)),
        ("Cloud", place_words(started.on)),
        ("Prices", "frozen when the run started"),
        ("Numbers", MEANING[started.provenance]),
        ("Why the search ended", decision.because if decision is not None else "it has not ended"),
        ("To reproduce", command(story)),
    ]
    return Table("How it was made", (("What", ""), ("Value", "")), rows)


def command(story: Story) -> str:
    """The command that repeats this search from its job file."""
    job, goal = story.job, story.goal
    limits = ["--budget", f"{goal.budget_usd:.10g}"] if goal.budget_usd is not None else []
    limits += ["--deadline", f"{goal.deadline_s:.10g}s"] if goal.deadline_s is not None else []
    on, method = ["--on", story.started.on], ["--method", job.search.method]
    goal_words = ["--goal", str(goal.objective)]
    match job.ask:
        case ServingTask() as service:
            words = ["serve", service.file or service.model.name, *on, *goal_words, *_asked(service), *limits]
            words += ["--trials", str(job.search.trials)] if job.search.trials is not None else []
            words += ["--knowledge", service.knowledge] if service.knowledge else []
            words += [word for axis, size in service.shapes.items() for word in ("--shape", f"{axis}={size}")]
            words += method
        case FunctionsTask(tuning=Tuning() as tuning):
            stages = ["--trials", str(tuning.trials), "--eta", str(tuning.eta)]
            stages += ["--epochs-per-stage", str(tuning.epochs_per_stage)]
            words = ["tune", "JOB.yaml", *on, *stages, *goal_words, *limits, *method]
        case FunctionsTask():
            target = ["--target-loss", f"{job.target.value:.10g}"] if job.target is not None else []
            words = ["train", "JOB.yaml", *on, *target, *goal_words, *limits, *method]
        case ScalingTask() as task:
            words = ["scale", "JOB.yaml", "--decide-only", *on, *goal_words, *limits]
            words += ["--workers", "..".join(str(count) for count in task.workers), "--search", str(task.mode)]
            words += ["--batch", ",".join(str(batch) for batch in task.batches)] if task.batches else []
        case _:
            words = ["train", "JOB.yaml", "--decide-only", *on, *goal_words, *limits, *method]
    return shlex.join(["mlcd", *words, "--seed", str(job.search.seed)])


def _asked(service: ServingTask) -> list[str]:
    words = ["--knobs", "KNOBS.yaml"] if service.table is not None else []
    for cap in service.caps:
        name = str(cap.figure).replace("_", "-")
        words += [f"--{name}" if "-" in name else f"--latency-{name}", f"{1_000 * cap.at_most_s:.10g}ms"]
    return words + (["--min-rps", f"{service.min_rate:.10g}"] if service.min_rate is not None else [])
