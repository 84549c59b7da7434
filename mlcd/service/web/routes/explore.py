"""Other goals, decided again from probes that are paid for: what-if, and the trade-off between time and cost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import UserError
from mlcd.core.runs.run import decide_again
from mlcd.planners.form import asked_again, goal_again, parsed
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.form import SERVICE_NAMES
from mlcd.planners.serve.nouns import ServingTask, serving_task
from mlcd.reports.document import decision_document
from mlcd.reports.functions.document import planned_documents
from mlcd.reports.functions.words import chosen_plan, plan_name
from mlcd.reports.functions.words import decision_sentence as functions_sentence
from mlcd.reports.serve.words import decision_sentence as service_sentence
from mlcd.reports.view.standing import what_if_certificate
from mlcd.reports.words import decision_words, goal_words
from mlcd.service.web.answers import Tradeoff, problems
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import JSON, Found, Made
from mlcd.service.web.tradeoff import tradeoff_of
from mlcd.service.web.view_answers import WhatIf
from mlcd.service.web.views import Seen, as_json

router = APIRouter(tags=["explore"])
Word = Annotated[str | None, Field(max_length=40)]


class Words(BaseModel):
    """A goal in the words of `mlcd what-if`: what is not said stays as it was."""

    model_config = ConfigDict(extra="forbid")
    goal: Literal["fastest", "cheapest", "knee", "per-dollar"] | None = None
    budget: Word = Field(None, description="Dollars, such as 100; none.")
    deadline: Word = Field(None, description="A time, such as 6h or 1d 4h; none.")
    confidence: Word = Field(None, description="How sure a certificate has to be, such as 0.9.")
    latency_p50: Word = Field(None, description="Of a service: such as 30ms; none.")
    latency_p95: Word = None
    latency_p99: Word = None
    ttft_p50: Word = None
    ttft_p95: Word = None
    itl_p50: Word = None
    itl_p95: Word = None
    min_rps: Word = Field(None, description="Of a service: answers a second at the least.")


@router.get(
    "/runs/{run}/what-if",
    summary="Decide again under another goal",
    response_model=WhatIf,
    responses=problems(404, 409, 422),
)
async def what_if(run: Found, made: Made, who: Viewer, words: Annotated[Words, Query()]) -> Response:
    """From the stored probes, at no cost; the run is not touched. A search with this goal from its start might have
    looked elsewhere.
    """
    chosen = parsed("what-if", words.model_dump(exclude_none=True))
    seen = await made.seen(run)
    return Response(as_json(await asyncio.to_thread(_decided_again, seen, chosen)), media_type=JSON)


@router.get(
    "/runs/{run}/tradeoff",
    summary="Time against cost of all that is known",
    response_model=Tradeoff,
    responses=problems(404, 409),
)
async def tradeoff(run: Found, made: Made, who: Viewer) -> Response:
    """Totals, probes included, with the Pareto boundary and its knee, and the ranges within which a limit matters."""
    body = await made.made("tradeoff", run, lambda seen: as_json(tradeoff_of(seen.lines)))
    return Response(body, media_type=JSON)


def _decided_again(seen: Seen, chosen: dict[str, Any]) -> dict[str, Any]:
    account, job = seen.account, seen.account.job
    goal = goal_again(job, chosen)
    if not isinstance(job.ask, ServingTask) and (
        asked := [name for name in SERVICE_NAMES if chosen.get(name) is not None]
    ):
        raise UserError(f"{asked[0]} is for runs of `mlcd serve`; '{seen.run}' is not one")
    service = asked_again(job.ask, chosen) if isinstance(job.ask, ServingTask) else None
    decision = decide_again(account, goal, service)
    job = replace(job, goal=goal, ask=service or job.ask)
    told, label = decision_document(decision), str(decision.configuration) if decision.configuration else None
    for way, relaxed in zip(decision.relaxations, told["relaxations"], strict=True):
        relaxed["label"] = str(way.configuration) if way.configuration is not None else None
    if isinstance(job.ask, ServingTask):
        words = service_sentence(decision, job, account.searched)
    elif isinstance(job.ask, FunctionsTask):
        words, told = functions_sentence(decision, job), told | planned_documents(decision, job)
        label = plan_name(plan.method) if (plan := chosen_plan(decision)) is not None else None
    else:
        words = decision_words(decision, goal)
    return {
        "run": seen.run,
        "goal": str(goal.objective),
        "goal_words": goal_words(goal, job.target, serving_task(job)),
        "decision": told,
        "label": label,
        "words": words,
        "certificate": what_if_certificate(job, account.searched, decision),
    }
