"""Comparisons on recorded deployments of language models: which one serves an unseen model at the least cost.

problem   a workload (model, tokens in and out of a request) under caps on TTFT and TPOT that some row keeps
share     of the best: tokens for a dollar of the row chosen so far over those of the best row; 0 while none is chosen
row       of points.csv, counted from 1 without its header
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.measurement import Measurement
from mlcd.planners.serve import service_level
from mlcd.planners.serve.known_models import Cell
from mlcd.planners.serve.llm.recording import EngineFolder, language_model
from mlcd.planners.serve.nouns import Cap, Figure, ServingTask, service_of
from mlcd_bench.serve.contest import trials_of
from mlcd_bench.serve.problem import ServeProblem

CAPS_MS = ((None, None), (2_000, 50), (1_000, 30), (1_000, 20), (500, 15), (None, 10))
"""Caps on TTFT and TPOT; None for no cap."""
TRIALS, SEEDS = 6, 3
"""Defaults of a comparison."""
ENGINES_ONLY = ("nearest", "roofline", "aiconfigurator")
"""Methods that need the sizes of a language model."""
METHODS = ("grey-box", "random", "popular", "portfolio", "gp-ei", *ENGINES_ONLY)
"""The methods for this kind of folder."""
SHOWN_AFTER = (1, 3, 6)
"""Numbers of trials after which a table shows the share."""
PER_HOUR = 3_600


@dataclass(frozen=True)
class EngineRun:
    """One run, as `mlcd bench serve -o json` prints it. `share`: after each trial."""

    model: str
    isl: int
    osl: int
    caps: dict[str, float | None]
    method: str
    seed: int
    trials: list[dict[str, Any]]
    chosen: list[int | None]
    optimum: int
    share: list[float] = field(default_factory=list)

    def after(self, trials: int) -> float:
        """The share of the best after so many trials; a search that stopped early keeps its last value."""
        return self.share[min(trials, len(self.share)) - 1] if self.share else 0.0


def engine_problems(
    folder: EngineFolder, unseen: Sequence[str], trials: int, *, one_by_one: bool
) -> list[ServeProblem]:
    """A problem for each workload of the unseen models and each of the caps; models are hidden with all workloads."""
    problems = []
    for name in unseen:
        seen = folder.knowledge.without(*((name,) if one_by_one else unseen))
        for model in folder.workloads(name):
            space = folder.space(model.facts.title)
            for caps in CAPS_MS:
                task = ServingTask(
                    model.facts, caps_of(*caps), counted=folder.counted, language=language_model(model.facts)
                )
                search = Search("grey-box", trials=trials)
                job = Job(model.facts.title, 0.0, Goal(Objective.PER_DOLLAR), ask=task, search=search)
                problem = ServeProblem(folder.knowledge, seen, model, space, job)
                if problem.optimum > 0:
                    problems.append(problem)
    return problems


def caps_of(ttft_ms: float | None, tpot_ms: float | None) -> tuple[Cap, ...]:
    """The caps, in seconds."""
    caps_ms = ((Figure.TTFT_P50, ttft_ms), (Figure.TPOT_P50, tpot_ms))
    return tuple(Cap(figure, ms / 1_000) for figure, ms in caps_ms if ms is not None)


def play_engines(problem: ServeProblem, method: str, seed: int, noise: float) -> EngineRun:
    """Search for an unseen workload."""
    tried = trials_of(problem, method, seed, noise)
    facts = problem.model.facts
    assert facts.prompts is not None
    choices = [_chosen(problem, tried[: i + 1]) for i in range(len(tried))]
    return EngineRun(
        facts.name,
        facts.prompts.input_tokens,
        facts.prompts.output_tokens,
        _caps_ms(problem),
        method,
        seed,
        [_trial(problem, m) for m in tried],
        [_row(problem, m) if m is not None else None for m in choices],
        _optimum(problem).row,
        [problem.truth[m.configuration] / problem.optimum if m is not None else 0.0 for m in choices],
    )


def _chosen(problem: ServeProblem, tried: Sequence[Measurement]) -> Measurement | None:
    """The best of these trials; None if none keeps the caps."""
    good = History(tuple(tried)).good
    best = max(good, key=lambda m: service_level.value(problem.job, m), default=None)
    return best if best is not None and service_level.keeps(problem.job, best) else None


def _caps_ms(problem: ServeProblem) -> dict[str, float | None]:
    caps = {cap.figure: 1_000 * cap.at_most_s for cap in service_of(problem.job).caps}
    return {"ttft_ms": caps.get(Figure.TTFT_P50), "tpot_ms": caps.get(Figure.TPOT_P50)}


def _trial(problem: ServeProblem, m: Measurement) -> dict[str, Any]:
    """The result of a trial; of a sweep, at its best concurrency, with the rows of all of them."""
    level, cell = service_level.best_level(problem.job, m), problem.recorded.composed(problem.model, m.configuration)
    shown = {
        "row": _row(problem, m),
        "ttft_ms": _ms(level.figures.get(Figure.TTFT_P50)),
        "tpot_ms": _ms(level.figures.get(Figure.TPOT_P50)),
        "tokens_per_usd": round(PER_HOUR * level.rate / m.configuration.usd_per_hour, 4),
        "keeps_caps": service_level.keeps(problem.job, m),
    }
    rows = [each.row for each in cell.levels.values()] if cell is not None else []
    return {**shown, "rows": rows} if problem.sweeps else shown


def _ms(seconds: float | None) -> float | None:
    return round(1_000 * seconds, 6) if seconds is not None else None


def _row(problem: ServeProblem, m: Measurement) -> int:
    """The row of a trial; of a sweep, that of its best concurrency."""
    cell = problem.recorded.composed(problem.model, m.configuration)
    assert cell is not None, "a recording has only what was measured"
    return cell.levels[service_level.best_level(problem.job, m).concurrency].row if cell.levels else cell.row


def _optimum(problem: ServeProblem) -> Cell:
    best: Configuration = max(problem.truth, key=lambda each: problem.truth[each])
    cell = problem.recorded.composed(problem.model, best)
    kept = cell.within(service_of(problem.job).caps) if cell is not None else None
    assert kept is not None, "problems that nothing solves are left out"
    return kept


def engine_summary(runs: Sequence[EngineRun], trials: int) -> list[dict[str, Any]]:
    """For each method the mean share after each trial, overall and under each of the caps, and its worst model."""
    entries = []
    for method in dict.fromkeys(run.method for run in runs):
        mine = [run for run in runs if run.method == method]
        by_model = {model: each[-1] for model, each in _means(mine, lambda run: run.model, trials).items()}
        worst = min(by_model, key=lambda model: by_model[model])
        entries.append(
            {
                "method": method,
                "runs": len(mine),
                "share": _mean(mine, trials),
                "by_caps": _means(mine, lambda run: caps_words(run.caps), trials),
                "worst": by_model[worst],
                "worst_model": worst,
                "trials": float(np.mean([len(run.trials) for run in mine])),
            }
        )
    return entries


def _means(runs: Sequence[EngineRun], key: Callable[[EngineRun], str], trials: int) -> dict[str, list[float]]:
    groups: dict[str, list[EngineRun]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return {name: _mean(each, trials) for name, each in groups.items()}


def _mean(runs: Sequence[EngineRun], trials: int) -> list[float]:
    return [float(np.mean([run.after(n) for run in runs])) for n in range(1, trials + 1)]


def caps_words(caps: dict[str, float | None]) -> str:
    """'TTFT 2000, TPOT 50 ms'; 'no caps'."""
    words = [
        f"{name} {caps[key]:g}" for name, key in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms")) if caps[key] is not None
    ]
    return f"{', '.join(words)} ms" if words else "no caps"
