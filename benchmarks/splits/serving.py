"""Searches for serving configurations on held-out models, machines and sources.

    python -m benchmarks.splits.serving ../shared [tuned]

It uses only code that earlier versions have, too, so the same file measures both: put another version on PYTHONPATH.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.splits.other_sources import (
    Elsewhere,
    Source,
    as_cuts,
    as_machines,
    elsewhere,
    even,
    mixed_up,
    on_other_machines,
    silicon,
    slower,
)
from mlcd.core.configuration import Space
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.planners.serve.known_models import Knowledge, SeenModel, knowledge_bases, read_knowledge
from mlcd.planners.serve.nouns import Cap, Counted, Figure, ServingTask, knobs_of
from mlcd_bench.serve import Recording, play, read_folder
from mlcd_bench.serve.problem import ServeProblem

SEEDS = {"grey-box": 2, "portfolio": 1, "random": 10}
AFTER = (1, 3, 6)
STRANGERS = Path(__file__).parent / "strangers"
OTHERS = {
    "eightfold faster": Elsewhere(faster=8.0),
    "in 4 bits": Elsewhere(named=(4.0,)),
    "another source": Elsewhere(named=(1.0, 4.0, 16.0), memory=4.0, users=4, faster=4.0),
    "experts": Elsewhere(named=(16.0,), memory=16.0),
    "other GPUs": Elsewhere(kinds=(1.0, 0.4, 2.5)),
    "another engine": Elsewhere(users=8, faster=2.0, sharing=0.3),
    "all of it": Elsewhere((16.0, 4.0), memory=8.0, users=8, faster=4.0, kinds=(1.0, 0.4, 2.5), sharing=0.3),
}
"""Sources made of LLM-Pilot's models: each is searched for with the other models, as they were measured, as seen; and
the other way round."""
SPLIT = (
    "By source and model. Tuned on: the 22 models of the shared H200 recording among themselves (by family, by size, "
    "mixed up, slowed) and as machines beside Ribbon's, Ribbon's models among themselves, and LLM-Pilot's (all others "
    "seen, the best machine unseen, mixed up, and made into other sources: other GPUs by name, other speeds, loads, "
    "sizes and engines). Held out, and searched once at the end: 14 models measured on an H200 for this study "
    "(benchmarks/measure_held_out_models.py), the 35 that ship with MLCD (known to the authors of earlier "
    "versions), the models that ship of a CPU, and llm_silicon. 'x -> y': x is seen, y is searched for; 'mixed up': "
    "every seen result stands at a configuration that it was not measured at. Seeds: grey-box 2, random 10."
)


@dataclass(frozen=True)
class Part:
    """Problems that share one row, under one cap."""

    name: str
    tuned: bool
    cap: str
    problems: tuple[ServeProblem, ...]


def run(shared: Path) -> list[dict[str, object]]:
    """A row for each part and method: mean accuracy after 1, 3 and 6 trials, and the worst model's after 6."""
    return [row for part in parts(shared) for row in rows(part)]


def parts(shared: Path) -> list[Part]:
    """All parts of the split, those used for tuning first."""
    return sorted([*devices(shared), *machines(shared), *languages(shared)], key=lambda part: not part.tuned)


def rows(part: Part) -> Iterator[dict[str, object]]:
    """The results of every method."""
    possible = [problem for problem in part.problems if problem.optimum > 0]
    for method, seeds in SEEDS.items():
        models = []
        with threadpool_limits(1):
            for problem in possible:
                curves = [play(problem, method, seed, 0.0).accuracy for seed in range(seeds)]
                models.append(np.mean(np.array(curves, dtype=float), axis=0))
        mean = np.mean(models, axis=0)
        worst = int(np.argmin([curve[-1] for curve in models]))
        yield {
            "part": "tuned" if part.tuned else "held out",
            "split": part.name,
            "cap": part.cap,
            "method": method,
            **{f"after {n}": round(float(mean[n - 1]), 3) for n in AFTER},
            "worst after 6": round(float(models[worst][-1]), 3),
            "models": len(possible),
            "by model": {p.model.facts.name: m.round(3).tolist() for p, m in zip(possible, models, strict=True)},
        }


def devices(shared: Path) -> Iterator[Part]:
    """Problems on shares of one GPU."""
    folder = read_folder(shared / "data" / "serve" / "h200")
    known, space = folder.knowledge, folder.space(folder.models[0])
    ours, new = [list(map(even, each.models)) for each in (knowledge_bases().load("h200"), read_knowledge(STRANGERS))]
    cpu = replace(known, models=tuple(as_cuts(knowledge_bases().load("cpu").models, 2)))
    cnns = [model for model in known.models if model.facts.family == "cnn"]
    others = [model for model in known.models if model.facts.family != "cnn"]
    for ms in (10, 30):

        def part(name: str, tuned: bool, seen: Knowledge, searched: Sequence[SeenModel], ms: int = ms) -> Part:
            problems = (_problem(known, seen, model, space, (Cap(Figure.P95, ms / 1e3),)) for model in searched)
            return Part(name, tuned, f"{ms} ms", tuple(problems))

        yield part("H200: CNNs -> others", True, replace(known, models=tuple(cnns)), others)
        yield part("H200: others -> CNNs", True, replace(known, models=tuple(others)), cnns)
        yield part("H200: mixed up", True, mixed_up(replace(known, models=known.models[::2])), known.models[1::2])
        yield part("H200: 22 -> 14 new", False, known, new)
        yield part("H200: 35 shipped -> 14 new", False, replace(known, models=tuple(ours)), new)
        yield part("H200: 22 -> 35 shipped", False, known, ours)
        yield part("H200: CPU's -> 14 new", False, cpu, new)
        yield part("H200: 22 mixed up -> 14 new", False, mixed_up(known), new)


def machines(shared: Path) -> Iterator[Part]:
    """Problems on whole machines."""
    ribbon = _source(read_folder(shared / "data" / "serve" / "ribbon"))
    h200 = read_folder(shared / "data" / "serve" / "h200").knowledge.models

    def of_gpu(share: float) -> float:
        return 0.1 + 4 * share / 100

    cuts, new = as_machines(h200, "sm_share", of_gpu), as_machines(read_knowledge(STRANGERS).models, "sm_share", of_gpu)
    cpu = as_machines(knowledge_bases().load("cpu").models, "threads", lambda threads: 0.02 + 0.05 * threads)
    recommenders = ("dien", "mtwnd")
    cnns = tuple(name for name in ribbon.spaces if name not in recommenders)
    for ms in (5, 10, 30):
        cap = (Cap(Figure.P95, ms / 1e3),)

        def part(name: str, tuned: bool, problems: list[ServeProblem], ms: int = ms) -> Part:
            return Part(f"machines: {name}", tuned, f"{ms} ms", tuple(problems))

        yield part("Ribbon -> H200's 22", True, _across(ribbon, cuts, cap))
        yield part("H200's 22 -> Ribbon", True, _across(cuts, ribbon, cap))
        if ms == 5:  # a cap that most configurations break: for tuning alone
            continue
        yield part("Ribbon, one left out", True, _left_out(ribbon, cap))
        yield part("Ribbon mixed up", True, _left_out(ribbon, cap, mixed_up))
        yield part("recommenders -> CNNs", True, _across(_only(ribbon, recommenders), _only(ribbon, cnns), cap))
        yield part("CNNs -> recommenders", True, _across(_only(ribbon, cnns), _only(ribbon, recommenders), cap))
        yield part("Ribbon -> H200's 14 new", False, _across(ribbon, new, cap))
        yield part("Ribbon -> CPU's", False, _across(ribbon, cpu, cap))
        yield part("CPU's -> Ribbon", False, _across(cpu, ribbon, cap))
        yield part("H200's 14 new -> Ribbon", False, _across(new, ribbon, cap))
        yield part("CPU's, one left out", False, _left_out(cpu, cap))


def languages(shared: Path) -> Iterator[Part]:
    """Problems on numbers of GPUs."""
    pilot = _source(read_folder(shared / "data" / "serve" / "llm_pilot"))
    other = silicon(shared / "data" / "serve" / "llm_silicon")
    caps_of = {f"itl {ms} ms": (Cap(Figure.ITL_P95, ms / 1e3),) for ms in (10, 50)}
    for name, caps in (("none", ()), *caps_of.items()):

        def part(words: str, tuned: bool, problems: list[ServeProblem], name: str = name) -> Part:
            told = [replace(each, job=_counting_tokens(each.job)) for each in problems]
            return Part(f"LLM: {words}", tuned, name, tuple(told))

        for words, how in OTHERS.items():
            made = elsewhere(pilot, how)
            if name != "itl 10 ms" or how.faster > 1:  # else hardly any of them could keep it
                yield part(f"Pilot -> {words}", True, _others(_across(pilot, made, caps)))
            if name == "itl 50 ms":
                yield part(f"{words} -> Pilot", True, _others(_across(made, pilot, caps)))
        if name == "itl 10 ms":  # a cap that most configurations break: for tuning alone
            continue
        yield part("Pilot, one left out", True, _left_out(pilot, caps))
        yield part("Pilot, best machine unseen", True, [_best_unseen(each) for each in _left_out(pilot, caps)])
        yield part("Pilot mixed up", True, _left_out(pilot, caps, mixed_up))
        yield part("Pilot thrice slower", True, _left_out(pilot, caps, lambda known: slower(known, 3.0)))
        yield part("Pilot -> silicon", False, _across(pilot, other, caps))
        yield part("silicon -> Pilot", False, _across(other, pilot, caps))
        yield part("silicon, one left out", False, _left_out(other, caps))
        yield part("silicon, best machine unseen", False, [_best_unseen(each) for each in _left_out(other, caps)])


def _problem(
    recorded: Knowledge, seen: Knowledge, model: SeenModel, space: Space, caps: tuple[Cap, ...]
) -> ServeProblem:
    search = Search("grey-box", trials=max(AFTER))
    job = Job(model.facts.name, 0.0, Goal(Objective.PER_DOLLAR), ask=ServingTask(model.facts, caps), search=search)
    return ServeProblem(recorded, seen, model, space, job)


def _source(folder: Recording) -> Source:
    return Source(folder.knowledge, {name: folder.space(name) for name in folder.models})


def _only(source: Source, names: Sequence[str]) -> Source:
    models = tuple(model for model in source.knowledge.models if model.facts.name in names)
    return Source(replace(source.knowledge, models=models), source.spaces)


def _across(seen: Source, searched: Source, caps: tuple[Cap, ...]) -> list[ServeProblem]:
    """Models of one source, with the other source as knowledge, and published figures of its machines."""
    numbers = {
        knob: {**values, **seen.knowledge.resources.get(knob, {})}
        for knob, values in searched.knowledge.resources.items()
    }
    known = replace(seen.knowledge, resources=numbers)
    return [
        _problem(searched.knowledge, known, model, searched.spaces[model.facts.name], caps)
        for model in searched.knowledge.models
    ]


def _others(problems: list[ServeProblem]) -> list[ServeProblem]:
    """The same, without the searched model in the other source."""
    return [replace(each, knowledge=each.knowledge.without(each.job.name)) for each in problems]


def _left_out(
    source: Source, caps: tuple[Cap, ...], change: Callable[[Knowledge], Knowledge] = lambda known: known
) -> list[ServeProblem]:
    """Each model with the others as knowledge; a network with other requests counts as the same model."""
    found = []
    for model in source.knowledge.models:
        network = model.facts.name.split(" ")[0]
        same = [each.facts.name for each in source.knowledge.models if each.facts.name.split(" ")[0] == network]
        known = change(source.knowledge.without(*same))
        found.append(_problem(source.knowledge, known, model, source.spaces[model.facts.name], caps))
    return found


def _best_unseen(problem: ServeProblem) -> ServeProblem:
    """Without results on the machine that is best for this model."""
    best = max(problem.truth, key=lambda each: problem.truth[each])
    machine = str(dict(knobs_of(best))[problem.knowledge.anatomy.cell[0]])
    return replace(problem, knowledge=on_other_machines(problem.knowledge, [machine]))


def _counting_tokens(job: Job) -> Job:
    assert isinstance(job.ask, ServingTask)
    return replace(job, ask=replace(job.ask, counted=Counted.TOKENS))


def main() -> None:
    """Print every row when it is computed."""
    for part in parts(Path(sys.argv[1])):
        if part.tuned or "tuned" not in sys.argv[2:]:
            for row in rows(part):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
