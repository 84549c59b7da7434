"""Make a serving job from the options of `mlcd serve`: caps, minimum rate, knobs, and the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.options import NO_LIMIT, new_goal, with_probe_limits
from mlcd.planners.serve.agreement import Agreement
from mlcd.planners.serve.caps import CAPS, METHOD, TRIALS, WHERE
from mlcd.planners.serve.llm.nouns import STEP_S, LanguageModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Arrivals, Cap, Counted, Figure, KnobTable, ServingTask

if TYPE_CHECKING:
    from mlcd.planners.serve.space import KnobsFile


def serving_job(
    facts: ModelFacts,
    counted: Counted,
    chosen: Mapping[str, Any],
    path: str = "",
    knobs: KnobsFile | None = None,
    agreement: Agreement | None = None,
    language: LanguageModel | None = None,
) -> Job:
    """The job of serving this model. `chosen`: the options by name. `path`: the model's file, unless recorded.

    `agreement`: of int8 with fp32; if it is too low, int8 is removed from the knobs. `language`: for a language model,
    whose load test is a sweep over concurrency and whose rate counts tokens.
    """
    rate = chosen.get("min_rps")
    if rate is not None and language is not None:
        rate *= language.prompts.output_tokens
    usual_s = 60.0 if language is None else STEP_S * len(language.sweep)
    on = chosen.get("on") or WHERE
    table = knobs.table if knobs is not None else None
    service = ServingTask(
        facts,
        caps_of(chosen),
        rate,
        counted,
        arrivals=Arrivals.OPEN if rate is not None and language is None else Arrivals.CLOSED,
        path="" if on.partition(":")[0] == "recorded" else path,
        shapes=chosen.get("shapes") or {},
        table=table if agreement is None or agreement.enough else without_int8(table, agreement),
        trial_s=(knobs.trial_s if knobs is not None else None) or usual_s,
        endpoint=knobs.server if knobs is not None else None,
        knowledge=chosen.get("knowledge") or "",
        target=chosen.get("target") or "",
        agreement=agreement,
        language=language,
    )
    search = Search(chosen.get("method") or METHOD, seed=chosen.get("seed") or 0, trials=chosen.get("trials") or TRIALS)
    search = with_probe_limits(search, chosen)
    goal = new_goal(Goal(Objective.PER_DOLLAR), chosen)
    return Job(facts.name, 0.0, goal, search=search, on=on, ask=_with_recorded_sizes(service))


def _with_recorded_sizes(service: ServingTask) -> ServingTask:
    """Add what a recording knows of a language model: its architecture and the lengths of its requests."""
    from mlcd.planners.serve.llm.recording import language_model

    return service if service.language is not None else replace(service, language=language_model(service.model))


def without_int8(table: KnobTable | None, agreement: Agreement) -> KnobTable:
    """The knobs without int8. UserError if int8 is the only precision."""
    from mlcd.planners.serve.space import default_knobs

    table = table or default_knobs()
    others = tuple(each for each in table.knobs.get("precision", ()) if each != "int8")
    if not others:
        raise UserError(
            f"knobs: precision is int8 alone, but {agreement}: below --min-agreement; add another precision"
        )
    return replace(table, knobs={**table.knobs, "precision": others})


def recorded_model(model: str, folder: Path) -> tuple[ModelFacts, Counted]:
    """The facts of a recorded model, and the unit of its rates."""
    from mlcd.planners.serve.recordings import read_folder

    recording = read_folder(folder)
    return recording.model(model).facts, recording.counted


def caps_of(chosen: Mapping[str, Any]) -> tuple[Cap, ...]:
    """The caps among the options."""
    limits = {figure: chosen.get(name) for name, (figure, _) in CAPS.items()}
    return tuple(Cap(Figure(figure), at) for figure, at in limits.items() if at is not None and at != NO_LIMIT)


def asked_again(service: ServingTask, chosen: Mapping[str, Any]) -> ServingTask:
    """The serving task with the caps and the minimum rate of a what-if in place of its own."""
    rate = chosen.get("min_rps")
    if rate is not None and service.language is not None:
        rate *= service.language.prompts.output_tokens
    named = {figure for name, (figure, _) in CAPS.items() if chosen.get(name) is not None}
    kept = tuple(cap for cap in service.caps if cap.figure not in named)
    return replace(service, caps=(*kept, *caps_of(chosen)), min_rate=rate or service.min_rate)
