"""A run as a row of a list: job, status, choice and cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath
from typing import Annotated

from pydantic import Field

from mlcd.core.job import Job
from mlcd.core.ledger import Account, Labels, Status
from mlcd.core.planner import planner_of
from mlcd.reports.functions.words import chosen_plan, size_words
from mlcd.reports.words import goal_words

QUEUED, REFUSED = "queued", "refused"
STATUSES = (QUEUED, REFUSED, *map(str, Status))
INTERRUPTED = "interrupted"
"""The status in lists of a run that is active by its entries, but has no process that drives it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything a list of runs shows, filters and sorts by; small, since all of them are kept at hand."""

    run: Annotated[str, Field(description="The run's name.")]
    kind: Annotated[str, Field(description="train, scale, serve, tune, functions, or a planner of another package.")]
    job: Annotated[str, Field(description="The job's name.")]
    status: Annotated[str, Field(description="Where it stands.", json_schema_extra={"enum": list(STATUSES)})]
    driven: Annotated[bool, Field(description="Whether a process drives it now.")]
    owner: Annotated[str | None, Field(description="The member whose run it is; null for one of the command line.")]
    team: Annotated[str | None, Field(description="Their team.")]
    started_at: Annotated[str, Field(description="When it began, or was asked for: a time of day, ISO 8601.")]
    on: Annotated[str, Field(description="The place that its probes run at.")]
    provenance: Annotated[str | None, Field(description="live, simulated or recorded; null before it has begun.")]
    goal: Annotated[str, Field(description="Its objective: fastest, cheapest, knee or per-dollar.")]
    goal_words: Annotated[str, Field(description="All that is asked of it, in words.")]
    tried: Annotated[int, Field(description="Probes that were made.")]
    chosen: Annotated[str | None, Field(description="What was decided; null where nothing is.")]
    spent_usd: Annotated[float, Field(description="Dollars spent so far.")]
    elapsed_s: Annotated[float, Field(description="Seconds on the run's clock.")]
    budget_usd: Annotated[float | None, Field(description="Dollars that may be spent; null for no limit.")]
    deadline_s: Annotated[float | None, Field(description="Seconds that it may take; null for no limit.")]
    because: Annotated[str, Field(description="The reason of the last entry that has one.")]
    project: Annotated[str | None, Field(description="The project that it belongs to; null for none.")] = None
    tags: Annotated[tuple[str, ...], Field(description="Its tags.")] = ()
    note: Annotated[str, Field(description="What somebody noted of it: plain text; empty for nothing.")] = ""
    archived: Annotated[bool, Field(description="Whether lists leave it out unless they are asked for it.")] = False


def standing_of(status: str, driven: bool) -> str:
    """A run's status; `interrupted` if no process drives it, so that it can be resumed."""
    return INTERRUPTED if status in ("searching", "running") and not driven else status


def labelled(summary: Summary, labels: Labels) -> Summary:
    """The summary with labels."""
    return replace(summary, project=labels.project, tags=labels.tags, note=labels.note, archived=labels.archived)


def waiting_summary(
    run: str, asked_at: str, job: Job, refused: str | None, owner: str | None = None, team: str | None = None
) -> Summary:
    """A run that was submitted and has not begun, or was refused."""
    return Summary(
        run=run,
        kind=planner_of(job).kind(job),
        job=job.name,
        status=QUEUED if refused is None else REFUSED,
        driven=False,
        owner=owner,
        team=team,
        started_at=asked_at,
        on=place_words(job.on),
        provenance=None,
        goal=str(job.goal.objective),
        goal_words=goal_words(job.goal, job.target, job.ask),
        tried=0,
        chosen=None,
        spent_usd=0.0,
        elapsed_s=0.0,
        budget_usd=job.goal.budget_usd,
        deadline_s=job.goal.deadline_s,
        because="waiting for a worker" if refused is None else refused,
    )


def summary_of(
    run: str,
    started_at: datetime,
    account: Account,
    driven: bool,
    owner: str | None = None,
    team: str | None = None,
    reason: str = "",
) -> Summary:
    """A run that has begun. `reason`: that of the last entry with one."""
    history, begun = account.history, account.started
    assert begun is not None, "a run begins with its start"
    return replace(
        waiting_summary(run, started_at.isoformat(), begun.job, None, owner, team),
        status=str(account.status),
        driven=driven,
        on=place_words(begun.on),
        provenance=str(begun.provenance),
        tried=len(history.measurements),
        chosen=_chosen(account),
        spent_usd=history.spent_usd,
        elapsed_s=history.elapsed_s,
        because=reason,
    )


def place_words(on: str) -> str:
    """The place without the path of a recording: 'recorded:tiny'."""
    kind, colon, place = on.partition(":")
    return f"{kind}:{PurePath(place).name}" if colon and place.startswith("/") else on


def _chosen(account: Account) -> str | None:
    decision = account.decision
    if decision is None or decision.configuration is None:
        return None
    plan = chosen_plan(decision)
    return f"{plan.method} plan: {size_words(plan)}" if plan is not None else str(decision.configuration)
