"""What-if decisions under other goals from stored probes, and the trade-off between time and cost."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import UserError
from mlcd.core.options import goal_again
from mlcd.core.part import Part
from mlcd.core.runs.run import decide_again
from mlcd.planners.form.option_parsers import parse_options
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.caps import SERVICE_NAMES
from mlcd.planners.serve.form import asked_again
from mlcd.planners.serve.nouns import ServingTask, serving_task
from mlcd.reports.document import decision_of
from mlcd.reports.functions.words import chosen_plan, plan_name
from mlcd.reports.functions.words import decision_sentence as functions_sentence
from mlcd.reports.run_document.core import RunDecision
from mlcd.reports.run_document.serve import ServeDecision
from mlcd.reports.run_document.tune import TuneDecision
from mlcd.reports.serve.words import decision_sentence as service_sentence
from mlcd.reports.tradeoff import Ranked, TradeoffPoint, tradeoff_of
from mlcd.reports.uncertified_option import uncertified_option_words
from mlcd.reports.view.certificate import what_if_certificate
from mlcd.reports.view.page import Certificate
from mlcd.reports.words import decision_words, goal_words
from mlcd.service.web.errors import error_responses
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import JSON, CachedViews, RunName
from mlcd.service.web.views import Snapshot, as_json

router = APIRouter(tags=["explore"], responses=error_responses(404, 409))
Word = Annotated[str | None, Field(max_length=40)]


class LimitRanges(Part):
    """The ranges in which a limit changes the decision."""

    budget: tuple[float, float] | None = Field(description="Dollars; null if not known.")
    deadline: tuple[float, float] | None = Field(description="Seconds; null if not known.")


class Tradeoff(Part):
    """Time against cost of all measured configurations."""

    run: str = Field(description="The run's name.")
    points: list[TradeoffPoint] = Field(description="The fastest first.")
    ranking: list[Ranked] = Field(
        description="For an elastic run whose time is not predicted; `points` then assume all of the work."
    )
    spent_usd: float = Field(description="What the search cost.")
    elapsed_s: float = Field(description="What the search took.")
    budget_usd: float | None = Field(description="The run's budget; null for no limit.")
    deadline_s: float | None = Field(description="The run's deadline; null for no limit.")
    ranges: LimitRanges = Field(description="Ranges for sliders.")


class WhatIf(Part):
    """The decision under another goal."""

    run: str = Field(description="The run's name.")
    goal: str = Field(description="The objective.")
    goal_words: str = Field(description="The goal and the limits in words.")
    decision: ServeDecision | TuneDecision | RunDecision = Field(description="What `mlcd what-if -o json` prints.")
    label: str | None = Field(description="The chosen configuration as the trade-off names it.")
    words: str = Field(description="The decision in a sentence.")
    certificate: Certificate | None = Field(description="The certificate of the decision.")
    not_certain: str | None = Field(description="A clearly better choice that is expected to fit but not certified.")


class Words(BaseModel):
    """A goal with the options of `mlcd what-if`; what is not given stays as it was."""

    model_config = ConfigDict(extra="forbid")
    goal: Literal["fastest", "cheapest", "knee", "per-dollar"] | None = Field(None, description="The objective.")
    budget: Word = Field(default=None, description="Dollars, such as 100; none.")
    deadline: Word = Field(default=None, description="A time, such as 6h or 1d 4h; none.")
    confidence: Word = Field(default=None, description="How sure a certificate has to be, such as 0.9.")
    latency_p50: Word = Field(default=None, description="Of a service: the median latency, such as 30ms; none.")
    latency_p95: Word = Field(default=None, description="Of a service: the 95th percentile of the latency.")
    latency_p99: Word = Field(default=None, description="Of a service: the 99th percentile of the latency.")
    ttft_p50: Word = Field(default=None, description="Of a service: the median time to the first token.")
    ttft_p95: Word = Field(None, description="Of a service: the 95th percentile of the time to the first token.")
    tpot_p50: Word = Field(None, description="Of a service: the median over answers of the time of each further token.")
    tpot_p95: Word = Field(None, description="Of a service: the 95th percentile of the same.")
    itl_p50: Word = Field(default=None, description="Of a service: the median time between two tokens.")
    itl_p95: Word = Field(default=None, description="Of a service: the 95th percentile of the time between two tokens.")
    min_rps: Word = Field(default=None, description="Of a service: answers a second at the least.")


@router.get(
    "/runs/{run}/what-if",
    summary="Decide again under another goal",
    response_model=WhatIf,
    responses=error_responses(422),
)
async def what_if(run: RunName, views: CachedViews, who: Viewer, words: Annotated[Words, Query()]) -> Response:
    """From the stored probes, at no cost; the run does not change. A search with this goal from the start might have
    probed other configurations.
    """
    chosen = parse_options("what-if", words.model_dump(exclude_none=True))
    snapshot = await views.snapshot(run)
    return Response(as_json(await asyncio.to_thread(_decided_again, snapshot, chosen)), media_type=JSON)


@router.get("/runs/{run}/tradeoff", summary="Time against cost of all that is known", response_model=Tradeoff)
async def tradeoff(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """Totals, probes included, with the Pareto boundary, its knee, and the ranges in which a limit matters."""
    body = await views.rendered("tradeoff", run, lambda snapshot: as_json(tradeoff_of(snapshot.lines)))
    return Response(body, media_type=JSON)


def _decided_again(snapshot: Snapshot, chosen: dict[str, Any]) -> dict[str, Any]:
    account, job = snapshot.account, snapshot.account.job
    goal = goal_again(job, chosen)
    caps = [name for name in SERVICE_NAMES if chosen.get(name) is not None]
    if caps and not isinstance(job.ask, ServingTask):
        raise UserError(f"{caps[0]} is for runs of `mlcd serve`; '{snapshot.run}' is not one")
    service = asked_again(job.ask, chosen) if isinstance(job.ask, ServingTask) else None
    decision = decide_again(account, goal, service)
    job = replace(job, goal=goal, ask=service or job.ask)
    label = str(decision.configuration) if decision.configuration else None
    if isinstance(job.ask, ServingTask):
        words = service_sentence(decision, job, account.searched)
    elif isinstance(job.ask, FunctionsTask):
        words = functions_sentence(decision, job)
        label = plan_name(plan.method) if (plan := chosen_plan(decision)) is not None else None
    else:
        words = decision_words(decision, goal)
    return {
        "run": snapshot.run,
        "goal": str(goal.objective),
        "goal_words": goal_words(goal, job.target, serving_task(job)),
        "decision": decision_of(job, decision, account.searched).model_dump(mode="json"),
        "label": label,
        "words": words,
        "certificate": what_if_certificate(job, account.searched, decision),
        "not_certain": uncertified_option_words(snapshot.lines, goal, label),
    }
