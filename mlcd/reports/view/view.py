"""Everything a run's page shows, in one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcd.core.additions import Additions
from mlcd.core.backend import Purpose
from mlcd.core.ledger import UNLABELLED, Account, Labels, Line, Reserved, Settled, Status
from mlcd.core.part import part_fields
from mlcd.core.planner import planner_of
from mlcd.planners.functions.nouns import FunctionsTask, Planned
from mlcd.planners.scale.nouns import batch_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.service_level import certifies
from mlcd.reports import answer as machines_page
from mlcd.reports.document import document_of, forecast_of
from mlcd.reports.functions import page as functions_page
from mlcd.reports.headline import headline
from mlcd.reports.run_document import NotBegun
from mlcd.reports.serve import page as serve_page
from mlcd.reports.serve.words import decision_sentence as service_sentence
from mlcd.reports.story import SettledProbe, Story, series
from mlcd.reports.view.certificate import certificate
from mlcd.reports.view.page import PathStep, RunPage, SpendPoint, UnderWay
from mlcd.reports.view.summary import QUEUED, Summary, labelled, summary_of
from mlcd.reports.words import decision_words

Fields = dict[str, Any]
ACTIVE = (Status.SEARCHING, Status.RUNNING)
MOST_WARNINGS = 3
"""Most warnings shown beside the answer."""


def view_of(
    lines: Sequence[Line],
    driven: bool = False,
    boundary: Sequence[Planned] = (),
    owner: str | None = None,
    team: str | None = None,
    labels: Labels = UNLABELLED,
    additions: Additions | None = None,
) -> Fields:
    """The page of a run that has begun, from all its entries, without `progress`, which is not in the ledger.

    `boundary`: on functions, the Pareto boundary of an epoch.
    """
    story = Story.of(lines)
    account = story.account
    answer = {ServingTask: serve_page, FunctionsTask: functions_page}.get(type(story.job.ask), machines_page)
    sentence, more = answer.sentences(story)
    summary = summary_of(story.run, lines[0].written_at, account, driven, owner, team, last_reason(lines))
    return _page(
        summary=labelled(summary, labels),
        answer={"headline": headline(story) or sentence, "sentence": sentence, "more": more},
        cards=[{"name": name, "value": value, "note": note} for name, value, note in answer.cards(story)],
        path=[_step(story, probe) for probe in story.probes],
        spend=_spending(story),
        under_way=_under_way(story),
        warnings=list(account.warnings[-MOST_WARNINGS:]),
        certificate=certificate(story),
        next=_next_words(story, driven),
        actions=_actions(account, driven),
        document=document_of(story, boundary, additions),
    )


def waiting_view(summary: Summary) -> Fields:
    """The page of a run that was submitted and has not begun, or was refused."""
    queued = summary.status == QUEUED
    sentence = "Waiting for a worker." if queued else f"It never began: {summary.because}."
    return _page(
        summary=summary,
        answer={"headline": sentence, "sentence": sentence, "more": ""},
        cards=[],
        path=[],
        spend={"budget_usd": summary.budget_usd, "deadline_s": summary.deadline_s, "points": []},
        under_way=[],
        warnings=[],
        certificate=None,
        next="it begins when a worker is free" if queued else f"it never began: {summary.because}",
        actions=["stop"] if queued else [],
        document=NotBegun(run=summary.run, status=summary.status, job=summary.job),
    )


def _page(**fields: Any) -> Fields:
    return RunPage(**fields).model_dump(mode="json", exclude={"progress"})


def last_reason(lines: Sequence[Line]) -> str:
    """The reason of the last entry that has one."""
    return next((reason for line in reversed(lines) if (reason := reason_of(line))), "")


def reason_of(line: Line) -> str:
    """The reason of an entry, for a launch with its configuration; '' if it has none."""
    reason: str = getattr(getattr(line.entry, "decision", line.entry), "because", "")
    return f"{line.entry.launch.configuration}: {reason}" if isinstance(line.entry, Reserved) and reason else reason


def _step(story: Story, probe: SettledProbe) -> Fields:
    """A probe with its interval; `certified` and `finish` only for planners that have them."""
    m, configuration = probe.measurement, probe.measurement.configuration
    rate = (m.rate, m.slow_samples_per_s, m.fast_samples_per_s) if m.ok else (None, None, None)
    certified = finish = None
    if m.ok and isinstance(story.job.ask, ServingTask):
        certified = certifies(story.job, story.pooled(probe))
    elif m.ok and not isinstance(story.job.ask, FunctionsTask):
        certified, finish = story.certified(probe), forecast_of(story.ahead(probe))
    return {
        **part_fields(PathStep, configuration),
        **part_fields(PathStep, m, **dict(zip(("rate", "low", "high"), rate, strict=True))),
        "number": probe.number,
        "because": probe.because,
        "series": series(configuration),
        "label": str(configuration),
        "batch": batch_of(configuration),
        "gpu": configuration.offer.accelerator,
        "gpus": configuration.nodes * configuration.offer.accelerators,
        "certified": certified,
        "chosen": probe is story.chosen,
        "finish": finish,
    }


def _spending(story: Story) -> Fields:
    """The money spent after each launch, and the reserve then."""
    spent_usd, reserves = 0.0, iter(story.reserves if not isinstance(story.job.ask, FunctionsTask) else ())
    rows: list[tuple[object, ...]] = [(0.0, 0.0, None, None, "", str(Purpose.PROBE))]
    for line in story.lines:
        if isinstance(line.entry, Settled):
            launch, spent_usd = line.entry.launch, spent_usd + line.entry.measurement.usd
            kept = next(reserves, None) if launch.purpose is Purpose.PROBE else None
            amounts = (kept.worst_usd, kept.worst_seconds) if kept is not None else (None, None)
            rows.append((line.elapsed_s, spent_usd, *amounts, str(launch.configuration), str(launch.purpose)))
    points = [dict(zip(SpendPoint.model_fields, row, strict=True)) for row in rows]
    return {"budget_usd": story.goal.budget_usd, "deadline_s": story.goal.deadline_s, "points": points}


def _under_way(story: Story) -> list[Fields]:
    since = {line.entry.launch.label: line.elapsed_s for line in story.lines if isinstance(line.entry, Reserved)}
    launches = [(reserved, reserved.launch) for reserved in story.account.open]
    return [
        part_fields(UnderWay, reserved, label=launch.label, purpose=str(launch.purpose), since_s=since[launch.label])
        | {"configuration": str(launch.configuration)}
        for reserved, launch in launches
    ]


def _next_words(story: Story, driven: bool) -> str:
    """What will happen next, or why it ended, in one line."""
    account, decision = story.account, story.decision
    if account.ended is not None:
        return f"ended: {account.ended.because}"
    if account.status is Status.STOPPED:
        return "stopped; resume it to go on from here: nothing that was measured is paid for twice"
    if account.status in ACTIVE and not driven:
        return "its process is gone; resume it to go on from here"
    if account.open:
        last = account.open[-1]
        return f"waiting for {last.launch.configuration}: {last.because}"
    if decision is None:
        return "computing what to try next"
    if account.status is Status.RUNNING and decision.configuration is not None:
        return "the job goes on with its next launch"
    launched = "launch it to run the job" if planner_of(story.job).launches else "export it to deploy it"
    then = launched
    if decision.configuration is None and isinstance(story.job.ask, ServingTask):
        then = service_sentence(decision, story.job, story.search)
    elif decision.configuration is None:
        then = decision_words(decision, story.goal)
    return f"the search ended: {decision.because}; {then}"


def _actions(account: Account, driven: bool) -> list[str]:
    if driven:
        return ["stop", "down"]
    actions = ["launch"] if account.status is Status.DECIDED and planner_of(account.job).launches else []
    actions += ["resume"] if account.status in (*ACTIVE, Status.STOPPED) else []
    return [*actions, "down"] if account.open or account.status in ACTIVE else actions
