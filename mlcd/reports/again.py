"""What made a run, and the command line that makes it again."""

from __future__ import annotations

import shlex

from mlcd.planners.functions.nouns import FunctionsTask, on_functions
from mlcd.planners.scale.nouns import scaling_task
from mlcd.planners.serve.nouns import ServingTask, service_of
from mlcd.reports.story import Story
from mlcd.reports.tables import Table
from mlcd.reports.view.summary import place_words

MEANING = {
    "simulated": "Simulated: these numbers come from a model of a cloud. They are not measurements.",
    "recorded": "Recorded: these numbers replay measurements made earlier; nothing was rented for this run.",
    "live": "Live: these numbers were measured on machines rented for this run.",
}


def about(story: Story) -> Table:
    """How the run was made, why its search ended, and how to make it again."""
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
    """The command line that makes this search again from its job file."""
    job = story.job
    if isinstance(job.ask, ServingTask):
        words = _serve(story)
    elif isinstance(job.ask, FunctionsTask):
        words = _functions(story)
    else:
        words = _machines(story)
    return shlex.join([*words, "--seed", str(job.search.seed)])


def _machines(story: Story) -> list[str]:
    task = scaling_task(story.job)
    words = ["mlcd", "train" if task is None else "scale", "JOB.yaml", "--decide-only", "--on", story.started.on]
    words += _goal(story)
    if task is None:
        return [*words, "--method", story.job.search.method]
    words += ["--workers", "..".join(str(count) for count in task.workers), "--search", str(task.mode)]
    return words + (["--batch", ",".join(str(batch) for batch in task.batches)] if task.batches else [])


def _functions(story: Story) -> list[str]:
    tuning, target = on_functions(story.job).tuning, story.job.target
    words = ["mlcd", "train" if tuning is None else "tune", "JOB.yaml", "--on", story.started.on]
    if tuning is not None:
        words += ["--trials", str(tuning.trials), "--eta", str(tuning.eta)]
        words += ["--epochs-per-stage", str(tuning.epochs_per_stage)]
    words += ["--target-loss", f"{target.value:.10g}"] if target is not None and tuning is None else []
    return [*words, *_goal(story), "--method", story.job.search.method]


def _serve(story: Story) -> list[str]:
    search, service = story.job.search, service_of(story.job)
    objective, *limits = _goal(story)[1:]
    words = ["mlcd", "serve", service.file or service.model.name, "--on", story.started.on, "--goal", objective]
    words += ["--knobs", "KNOBS.yaml"] if service.table is not None else []
    for cap in service.caps:
        name = str(cap.figure).replace("_", "-")
        words += [f"--{name}" if "-" in name else f"--latency-{name}", f"{1_000 * cap.at_most_s:.10g}ms"]
    words += ["--min-rps", f"{service.min_rate:.10g}"] if service.min_rate is not None else []
    words += limits
    words += ["--trials", str(search.trials)] if search.trials is not None else []
    words += ["--knowledge", service.knowledge] if service.knowledge else []
    words += [word for axis, size in service.shapes.items() for word in ("--shape", f"{axis}={size}")]
    return [*words, "--method", search.method]


def _goal(story: Story) -> list[str]:
    goal = story.goal
    words = ["--goal", str(goal.objective)]
    words += ["--budget", f"{goal.budget_usd:.10g}"] if goal.budget_usd is not None else []
    return words + (["--deadline", f"{goal.deadline_s:.10g}s"] if goal.deadline_s is not None else [])
