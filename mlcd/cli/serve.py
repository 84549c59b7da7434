"""mlcd serve: finds the best serving configuration of a model by load tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import F, duration, output, parsed_by, probe_limits, shapes, usd, with_options
from mlcd.core.units import parse_latency
from mlcd.planners.form.words import GOALS
from mlcd.planners.serve.caps import CAPS, METHOD, TRIALS, WHERE

if TYPE_CHECKING:
    from mlcd.core.job import Job
    from mlcd.core.runs.run import Run
    from mlcd.planners.serve.nouns import Counted, ModelFacts


def _cap(name: str, words: str) -> Callable[[F], F]:
    text = f"{words[0].upper()}{words[1:]} within this: 30ms; 'none'."
    parse = parsed_by(parse_latency, or_none=True)
    return click.option(f"--{name.replace('_', '-')}", metavar="TIME", callback=parse, help=text)


service_options: Sequence[Callable[[F], F]] = (
    *(_cap(name, words) for name, (_, words) in CAPS.items()),
    click.option("--min-rps", type=click.FloatRange(0, min_open=True), help="Requests a second it has to answer."),
)
serve_options = (
    click.option(
        "--knobs",
        type=click.Path(path_type=Path),
        help="What may vary, and its price; without it, what this machine has.",
    ),
    click.option("--goal", type=click.Choice(GOALS["serve"]), help="What to look for; per-dollar."),
    *service_options,
    click.option("--budget", metavar="USD", callback=usd, help="Dollars for all trials together, such as 5; 'none'."),
    click.option("--deadline", metavar="TIME", callback=duration, help="Time for all trials together: 30m; 'none'."),
    *probe_limits,
    click.option("--trials", default=TRIALS, show_default=True, type=click.IntRange(1), help="How many at the most."),
    click.option("--method", default=METHOD, show_default=True, help="How to search: grey-box, falcon ..."),
    click.option("--knowledge", metavar="NAME", help="Models seen before: a folder of `mlcd learn`, cpu or h200."),
    shapes,
    click.option("--on", default=WHERE, show_default=True, metavar="BACKEND", help="Where: local, recorded:DIR."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of everything random."),
)


@click.command()
@click.argument("model", metavar="MODEL")
@with_options((*serve_options, output))
def serve(model: str, output: str, **chosen: Any) -> int:
    """Find how to serve a model, by a few load tests.

    MODEL is an ONNX file; with --on recorded:DIR, the name of a model there.

    \b
    mlcd serve model.onnx --latency-p95 30ms --budget 5
    mlcd serve model.onnx --min-rps 200 --goal cheapest
    """
    from mlcd.cli.server import chosen_server
    from mlcd.cli.submissions import submission_of_model
    from mlcd.cli.train import begin

    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import begin_remote

        return begin_remote(server, submission_of_model(model, chosen), decide_only=True, yes=True, output=output)
    return begin(read_model(model, chosen), decide_only=True, yes=True, output=output, beforehand=_beforehand)


def _beforehand(run: Run) -> str:
    """How many trials the search expects to need; only MLCD's own method knows."""
    from mlcd.core.planner import planner_of

    return planner_of(run.job).expectation(run.job, run.cloud.space)


def read_model(model: str, chosen: Mapping[str, Any]) -> Job:
    """The job of a command line: the model's file is read, or the model is found in a recording."""
    from mlcd.planners.serve.form import serving_job
    from mlcd.planners.serve.space import load_knobs

    facts, counted = _prior_facts(model, chosen)
    knobs = load_knobs(chosen["knobs"]) if chosen.get("knobs") else None
    return serving_job(facts, counted, chosen, str(Path(model).resolve()), knobs)


def _prior_facts(model: str, chosen: Mapping[str, Any]) -> tuple[ModelFacts, Counted]:
    """What is known of the model before any trial, and the unit of its rate."""
    from mlcd.planners.serve.form import recorded_model
    from mlcd.planners.serve.nouns import Counted
    from mlcd.planners.serve.operators.onnx_profile import facts_of

    kind, _, place = chosen["on"].partition(":")
    if kind == "recorded" and place:
        return recorded_model(model, Path(place))
    return facts_of(Path(model), chosen.get("shapes")), Counted.REQUESTS
