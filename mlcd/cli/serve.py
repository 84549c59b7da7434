"""mlcd serve: the right way to serve a model, found trial by trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import NO_LIMIT, F, duration, new_goal, output, shapes, usd, with_options, written
from mlcd.units import parse_latency

if TYPE_CHECKING:
    from mlcd.assemble import Run
    from mlcd.job import Job
    from mlcd.service import Cap, Counted, ModelFacts, Service

CAPS = {
    "latency_p50": ("p50", "half of the answers come"),
    "latency_p95": ("p95", "19 of 20 answers come"),
    "latency_p99": ("p99", "99 of 100 answers come"),
    "ttft_p50": ("ttft_p50", "half of the first tokens come"),
    "ttft_p95": ("ttft_p95", "19 of 20 first tokens come"),
    "itl_p50": ("itl_p50", "half of the next tokens come"),
    "itl_p95": ("itl_p95", "19 of 20 next tokens come"),
}
"""Options that cap a figure, the figure of each, and what it means."""
SERVICE_NAMES = (*CAPS, "min_rps")
METHOD, TRIALS = "grey-box", 10


def _cap(name: str, words: str) -> Callable[[F], F]:
    told = f"{words[0].upper()}{words[1:]} within this: 30ms; 'none'."
    parse = written(parse_latency, or_none=True)
    return click.option(f"--{name.replace('_', '-')}", metavar="TIME", callback=parse, help=told)


service_options: Sequence[Callable[[F], F]] = (
    *(_cap(name, words) for name, (_, words) in CAPS.items()),
    click.option("--min-rps", type=click.FloatRange(0, min_open=True), help="Requests a second it has to answer."),
)
serve_options = (
    click.option("--knobs", type=click.Path(path_type=Path), help="The file that says what may vary, and its price."),
    click.option(
        "--goal", type=click.Choice(["per-dollar", "cheapest", "fastest"]), help="What to look for; per-dollar."
    ),
    *service_options,
    click.option("--budget", metavar="USD", callback=usd, help="Dollars for all trials together, such as 5; 'none'."),
    click.option("--deadline", metavar="TIME", callback=duration, help="Time for all trials together: 30m; 'none'."),
    click.option("--trials", default=TRIALS, show_default=True, type=click.IntRange(1), help="How many at the most."),
    click.option("--method", default=METHOD, show_default=True, help="How to search: grey-box, falcon ..."),
    click.option("--knowledge", metavar="NAME", help="Models seen before: a folder of `mlcd learn`, cpu or h200."),
    shapes,
    click.option("--on", default="local", show_default=True, metavar="BACKEND", help="Where: local, recorded:DIR."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of everything random."),
)


@click.command()
@click.argument("model", metavar="MODEL")
@with_options((*serve_options, output))
def serve(model: str, output: str, **chosen: Any) -> int:
    """Find how to serve a model: load-test a few configurations, and choose.

    MODEL is an ONNX file; with --on recorded:DIR, the name of a model there.
    """
    from mlcd.cli.train import begin

    return begin(serving_job(model, chosen), decide_only=True, yes=True, output=output, beforehand=_beforehand)


def _beforehand(run: Run) -> str:
    """How many trials the search expects to need; only ours says."""
    from mlcd.assemble.serving import expectation

    expected = expectation(run.job, run.cloud.space)
    return str(expected) if expected is not None else ""


def serving_job(model: str, chosen: Mapping[str, Any]) -> Job:
    """The job of a command line."""
    from mlcd.job import Goal, Job, Objective, Search
    from mlcd.jobfile.knobs import load_knobs
    from mlcd.service import Arrivals, Service

    facts, counted = _known(model, chosen)
    knobs = load_knobs(chosen["knobs"]) if chosen.get("knobs") else None
    rate = chosen.get("min_rps")
    service = Service(
        facts,
        caps_of(chosen),
        rate,
        counted,
        arrivals=Arrivals.OPEN if rate is not None else Arrivals.CLOSED,
        path=str(Path(model).resolve()) if chosen["on"] == "local" else "",
        shapes=chosen.get("shapes") or {},
        table=knobs.table if knobs is not None else None,
        trial_s=knobs.trial_s if knobs is not None else 60.0,
        endpoint=knobs.server if knobs is not None else None,
        knowledge=chosen.get("knowledge") or "",
    )
    search = Search(chosen["method"], seed=chosen["seed"], trials=chosen["trials"])
    goal = new_goal(Goal(Objective.PER_DOLLAR), chosen)
    return Job(facts.name, 0.0, goal, search=search, on=chosen["on"], service=service)


def _known(model: str, chosen: Mapping[str, Any]) -> tuple[ModelFacts, Counted]:
    """What is known of the model before any trial, and what its rate counts."""
    from mlcd.service import Counted

    kind, _, place = chosen["on"].partition(":")
    if kind == "recorded" and place:
        from mlcd.errors import UnknownName
        from mlcd.knowledge.recordings import read_folder

        folder = read_folder(Path(place))
        if model not in folder.models:
            raise UnknownName("recorded model", model, folder.models)
        return folder.model(model).facts, folder.counted
    from mlcd.operators.facts import facts_of

    return facts_of(Path(model), chosen.get("shapes")), Counted.REQUESTS


def caps_of(chosen: Mapping[str, Any]) -> tuple[Cap, ...]:
    """The caps that the command line asks for."""
    from mlcd.service import Cap, Figure

    told = {figure: chosen.get(name) for name, (figure, _) in CAPS.items()}
    return tuple(Cap(Figure(figure), at) for figure, at in told.items() if at is not None and at != NO_LIMIT)


def asked_again(service: Service, chosen: Mapping[str, Any]) -> Service:
    """A service with the command line's caps and rate in place of its own."""
    named = {figure for name, (figure, _) in CAPS.items() if chosen.get(name) is not None}
    kept = tuple(cap for cap in service.caps if cap.figure not in named)
    return replace(service, caps=(*kept, *caps_of(chosen)), min_rate=chosen.get("min_rps") or service.min_rate)
