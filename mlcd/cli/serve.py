"""mlcd serve: the right way to serve a model, found trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import NO_LIMIT, duration, new_goal, output, usd, with_options, written
from mlcd.units import parse_latency, parse_size

if TYPE_CHECKING:
    from mlcd.job import Job
    from mlcd.service import Cap, ModelFacts, Service

FIGURES = ("p50", "p95", "p99", "ttft_p50", "ttft_p95", "itl_p50", "itl_p95")
WORDS = {"p50": "half of the answers", "p95": "19 of 20 answers", "p99": "99 of 100 answers"}
METHOD, TRIALS = "grey-box", 10
SERVICE_NAMES = ("latency_p50", "latency_p95", "latency_p99", "ttft_p95", "itl_p95", "min_rps")

latency = written(parse_latency, or_none=True)
service_options = (
    *(
        click.option(
            f"--latency-{name}", metavar="TIME", callback=latency, help=f"{words} come within this: 30ms; 'none'."
        )
        for name, words in WORDS.items()
    ),
    click.option(
        "--ttft-p95", metavar="TIME", callback=latency, help="19 of 20 first tokens come within this; 'none'."
    ),
    click.option("--itl-p95", metavar="TIME", callback=latency, help="19 of 20 next tokens come within this; 'none'."),
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
    click.option(
        "--shape",
        multiple=True,
        callback=lambda c, p, v: dict(_shape(c, p, each) for each in v),
        metavar="AXIS=SIZE",
        help="The size of an axis that the model leaves open: sequence=128; repeatable.",
    ),
    click.option("--on", default="local", show_default=True, metavar="BACKEND", help="Where: local, recorded:DIR."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of everything random."),
)


def _shape(ctx: click.Context, param: click.Parameter, told: str) -> tuple[str, int]:
    try:
        return parse_size(told)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command()
@click.argument("model", metavar="MODEL")
@with_options((*serve_options, output))
def serve(model: str, output: str, **chosen: Any) -> int:
    """Find how to serve a model: load-test a few configurations, and choose.

    MODEL is an ONNX file; with --on recorded:DIR, the name of a model there.
    """
    from mlcd.cli.train import begin

    return begin(serving_job(model, chosen), decide_only=True, yes=True, output=output)


def serving_job(model: str, chosen: Mapping[str, Any]) -> Job:
    """The job of a command line."""
    from mlcd.job import Goal, Job, Objective, Search
    from mlcd.jobfile.knobs import load_knobs
    from mlcd.service import Arrivals, Service

    facts = _facts(model, chosen)
    knobs = load_knobs(chosen["knobs"]) if chosen.get("knobs") else None
    rate = chosen.get("min_rps")
    service = Service(
        facts,
        caps_of(chosen),
        rate,
        arrivals=Arrivals.OPEN if rate is not None else Arrivals.CLOSED,
        path=str(Path(model).resolve()) if chosen["on"] == "local" else "",
        shapes=chosen.get("shape") or {},
        table=knobs.table if knobs is not None else None,
        trial_s=knobs.trial_s if knobs is not None else 60.0,
        endpoint=knobs.server if knobs is not None else None,
        knowledge=chosen.get("knowledge") or "",
    )
    search = Search(chosen["method"], seed=chosen["seed"], trials=chosen["trials"])
    goal = new_goal(Goal(Objective.PER_DOLLAR), chosen)
    return Job(facts.name, 0.0, goal, search=search, on=chosen["on"], service=service)


def _facts(model: str, chosen: Mapping[str, Any]) -> ModelFacts:

    if chosen["on"].startswith("recorded:"):
        from mlcd.errors import UnknownName
        from mlcd.knowledge.recordings import read_folder

        folder = read_folder(Path(chosen["on"].partition(":")[2]))
        if model not in folder.models:
            raise UnknownName("recorded model", model, folder.models)
        return folder.model(model).facts
    from mlcd.operators.facts import facts_of

    return facts_of(Path(model), chosen.get("shape"))


def caps_of(chosen: Mapping[str, Any]) -> tuple[Cap, ...]:
    """The caps that the command line asks for."""
    from mlcd.service import Cap, Figure

    found = []
    for figure in FIGURES:
        told = chosen.get(figure if "_" in figure else f"latency_{figure}")
        if told is not None and told != NO_LIMIT:
            found.append(Cap(Figure(figure), told))
    return tuple(found)


def asked_again(service: Service, chosen: Mapping[str, Any]) -> Service:
    """A service with the command line's caps and rate in place of its own."""
    new = {cap.figure: cap for cap in service.caps}
    for figure in FIGURES:
        if chosen.get(figure if "_" in figure else f"latency_{figure}") == NO_LIMIT:
            new = {key: cap for key, cap in new.items() if key != figure}
    new |= {cap.figure: cap for cap in caps_of(chosen)}
    return replace(service, caps=tuple(new.values()), min_rate=chosen.get("min_rps") or service.min_rate)
