"""The command of each planner, `mlcd train`, `tune`, `scale` and `serve`, and those of other packages' planners."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.events import EVENTS
from mlcd.cli.options import (
    confirmed,
    job_file,
    label_options,
    output,
    parsed_by,
    run_options,
    watch_json,
    with_options,
)
from mlcd.cli.planner_options import options_of
from mlcd.cli.server import chosen_server, typed_options
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.units import parse_share
from mlcd.planners.serve.caps import LANGUAGE, MIN_AGREEMENT, WHERE

if TYPE_CHECKING:
    from mlcd.planners.serve.space import KnobsFile

HELP = {
    "train": """Probe machines for a training job, decide, ask, and run it there.

    Options override the job file. By default it looks for the fastest configuration, without a limit, on the simulated
    cloud. Before real money is spent, you are asked. Without a terminal nobody can be asked: then real money needs -y,
    and everything else, the final run too, proceeds.

    \b
    mlcd train job.yaml --budget 100
    mlcd train job.yaml --goal cheapest --deadline 6h --decide-only
    mlcd train job.yaml --on local -y
    mlcd train job.yaml --on local -y --detach
    """,
    "tune": """Search hyperparameters on cloud functions, by successive halving.

    All trials train for some epochs, then the better half continues, and so on. Options override the job file.

    \b
    mlcd tune job.yaml --trials 64 --budget 5
    mlcd tune job.yaml --trials 64 --deadline 2h --decide-only
    """,
    "scale": """Find the number of workers and the batch size while the job trains.

    The job must save checkpoints. Options override its `scale:` block.

    \b
    mlcd scale job.yaml --workers 1..8 --batch 64..1024 --target 'accuracy >= 0.97'
    """,
}


def _variables(ctx: click.Context, param: click.Parameter, written: tuple[str, ...]) -> dict[str, str | None]:
    for each in written:
        if not re.fullmatch(r"[A-Za-z_]\w*+(=.*)?", each, re.DOTALL):
            raise click.BadParameter(f"'{each}': expected NAME or NAME=VALUE, such as EPOCHS=90", ctx, param)
    parts = [each.partition("=") for each in written]
    return {name: value if equals else None for name, equals, value in parts}


env_option = click.option(
    "--env",
    "variables",
    multiple=True,
    callback=_variables,
    metavar="NAME[=VALUE]",
    help="An environment variable for the job; repeatable. Without VALUE: this shell's value, which is not stored.",
)
begin_from = click.option(
    "--from", "begin_from", metavar="RUN", default="", help="Start from a copy of the checkpoint of this earlier run."
)


def command_of(kind: str) -> click.Command:
    """The command `mlcd KIND JOB`, with the options of its planner."""

    def run(
        job_path: Path,
        decide_only: bool,
        yes: bool,
        detach: bool,
        output: str,
        project: str,
        tags: tuple[str, ...],
        variables: Mapping[str, str | None] | None = None,
        begin_from: str = "",
        **chosen: Any,
    ) -> int:
        from mlcd.cli.drive import begin
        from mlcd.cli.messages import RunOptions
        from mlcd.core.ledger import LabelUpdate

        options = RunOptions(decide_only, yes, detach, output, LabelUpdate.of(project or None, tags))
        job = read_job(kind, job_path, chosen)  # before it is sent, so that a mistake is reported with its line
        if (server := chosen_server()) is not None:
            if begin_from:
                raise UserError("--from starts from a checkpoint on this machine: leave out --server")
            if variables:
                raise UserError(
                    "--env works only for runs of this machine; for a service, write `envs:` in the job file"
                )
            from mlcd.cli.remote_runs import begin_remote, submission_of_file

            return begin_remote(server, submission_of_file(kind, job_path, chosen), options)
        if variables:
            job = replace(job, task={**job.task, "envs": {**(job.task.get("envs") or {}), **variables}})
        return begin(job, options, begin_from)

    more = {"train": (env_option, begin_from), "tune": ()}.get(kind, (env_option,))
    text = HELP.get(kind)
    if text is None:
        from mlcd.core.planner import planner_named

        text = f"{planner_named(kind).summary}\n\nOptions override the job file."
    options = (*options_of(kind), *more, *label_options, *run_options)
    return click.command(kind, help=text)(job_file(with_options(options)(run)))


def read_job(kind: str, path: Path, chosen: Mapping[str, Any]) -> Job:
    """The job of a file, overridden by options of the command line."""
    from mlcd.planners.form.jobs import job_with_options
    from mlcd.planners.jobfile.read import load_job

    return job_with_options(kind, load_job(path), chosen, str(path))


train, tune, scale = map(command_of, HELP)


@click.command()
@click.argument("model", metavar="MODEL", required=False)
@click.option("--model", "named", metavar="MODEL", help="The same as the argument.")
@click.option(
    "--knobs",
    type=click.Path(path_type=Path),
    help="A file of what may vary, and its price. Default: what this machine has.",
)
@click.option(
    "--samples",
    type=click.Path(path_type=Path),
    help="Check the answers of int8 on these inputs: .npz, a folder of .npy, or JSON Lines.",
)
@click.option(
    "--min-agreement",
    metavar="SHARE",
    callback=parsed_by(parse_share),
    help=f"Share of the samples on which int8 must answer like the model, to be tried. Default: {MIN_AGREEMENT}.",
)
@click.option("--deploy", is_flag=True, help="Language model: keep the chosen server running, as `mlcd deploy` does.")
@with_options((*options_of("serve"), *label_options, confirmed, output, watch_json))
def serve(
    model: str | None,
    named: str | None,
    knobs: Path | None,
    samples: Path | None,
    min_agreement: float | None,
    deploy: bool,
    project: str,
    tags: tuple[str, ...],
    yes: bool,
    output: str,
    **chosen: Any,
) -> int:
    """Find the best way to serve a model, by a few load tests.

    MODEL is an ONNX file; or, for a language model, its folder, or with --engine its name. With --on recorded:DIR it is
    the name of a model in that recording.

    \b
    mlcd serve model.onnx --latency-p95 30ms --budget 5
    mlcd serve model.onnx --min-rps 200 --goal cheapest
    mlcd serve model.onnx --target mlserver --samples inputs.npz
    mlcd serve model.onnx --knobs types.yaml --on skypilot:aws --budget 2
    mlcd serve --model ./llama --engine vllm --ttft-p95 500ms --tpot-p95 50ms --budget 5
    mlcd serve --endpoint http://localhost:8000 --price 2.50 --sweep 1..64
    """
    from mlcd.cli.deploy import begin_and_deploy
    from mlcd.cli.drive import begin
    from mlcd.cli.messages import RunOptions
    from mlcd.core.ledger import LabelUpdate
    from mlcd.planners.serve.space import load_knobs

    if model and named and model != named:
        raise UserError(f"two models are given, '{model}' and '{named}'; name one")
    model = model or named or ""
    if deploy and output == EVENTS:
        raise UserError(
            "--watch-json ends with the decision: leave out --deploy, and deploy afterwards: mlcd deploy RUN -o json"
        )
    labels = LabelUpdate.of(project or None, tags)
    options = RunOptions(decide_only=True, yes=yes, detach=False, output=output, labels=labels)
    file = load_knobs(knobs) if knobs is not None else None
    if samples is None and min_agreement is not None:
        raise UserError("--min-agreement needs --samples")
    recorded = (chosen.get("on") or WHERE).startswith("recorded")
    if samples is not None and (recorded or chosen_server() is not None):
        raise UserError("--samples works only on this machine: leave out --on recorded and --server")
    if samples is not None and file is not None and "int8" not in file.table.knobs.get("precision", ()):
        raise UserError("--samples checks int8, and int8 is not in the knobs file; add it, or leave out --samples")
    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import begin_remote
        from mlcd.service.remote.requests import Submission

        text = knobs.read_text(encoding="utf-8") if knobs is not None else None
        return begin_remote(server, Submission("serve", typed_options(chosen), model=model, knobs=text), options)
    job = _serving_job(model, file, chosen, samples, min_agreement)
    return begin_and_deploy(job, options) if deploy else begin(job, options)


def _serving_job(
    model: str, file: KnobsFile | None, chosen: Mapping[str, Any], samples: Path | None, least: float | None
) -> Job:
    """The job of a recorded model, a language model or an ONNX file. `least`: agreement int8 needs on `samples`."""
    from mlcd.planners.serve.form import recorded_model, serving_job
    from mlcd.planners.serve.nouns import Counted

    place, _, folder = (chosen.get("on") or WHERE).partition(":")
    if place == "recorded" and folder:
        facts, counted = recorded_model(model, Path(folder))
        return serving_job(facts, counted, chosen, model, file)
    if chosen.get("engine") or chosen.get("endpoint") or (file is not None and file.engine) or Path(model).is_dir():
        from mlcd.cli.language_model import language_job

        if samples is not None:
            raise UserError("--samples works only for an ONNX model")
        return language_job(model, file, chosen)
    if not model:
        raise UserError("no model given; name an ONNX file, the folder of a language model, or an --endpoint")
    if given := next((name for name in LANGUAGE if chosen.get(name)), None):
        option = f"--{given.replace('_', '-')}"
        raise UserError(f"{option} is for a language model: name its folder, an --engine or an --endpoint")
    from mlcd.planners.serve.operators.onnx_profile import facts_of

    facts, agreement = facts_of(Path(model), chosen.get("shapes")), None
    if samples is not None:
        from mlcd.clouds.servers.agreement import compared
        from mlcd.core.home import home

        agreement = compared(Path(model), samples, least or MIN_AGREEMENT, home() / "quantised")
    return serving_job(facts, Counted.REQUESTS, chosen, str(Path(model).resolve()), file, agreement)
