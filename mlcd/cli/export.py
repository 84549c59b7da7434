"""mlcd export: write the decision as files that another tool runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click

from mlcd.cli.options import FILE, open_ledger, output, parsed_by, print_json, run_name, write_file, writing
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.ledger import Account
from mlcd.core.units import parse_range
from mlcd.planners.serve.nouns import knobs_of, serving_task
from mlcd.reports.deploy.deployment import Deployment, Export, deployment_of
from mlcd.reports.deploy.engine import ONE_REPLICA, Replicas
from mlcd.reports.deploy.engine_targets import ENGINE_TARGETS
from mlcd.reports.deploy.lambda_ import lambda_configuration
from mlcd.reports.deploy.targets import TARGETS, made_for
from mlcd.reports.skypilot import task_of, task_text

SERVING = tuple(dict.fromkeys((*TARGETS, *ENGINE_TARGETS)))
"""The tools that can serve a model."""


@click.command()
@run_name
@click.option(
    "--to",
    "target",
    type=click.Choice(("skypilot", *SERVING, "lambda")),
    required=True,
    help="The tool that will run it.",
)
@click.option("--file", "file", type=FILE, help="Write to this file instead of stdout.")
@click.option(
    "--to-dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Serving: write all files into this folder, and copy the model beside them.",
)
@click.option(
    "--trial", type=click.IntRange(1), help="Language model: export this trial, not the chosen one; counted from 1."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    help="Language model: most concurrent requests, one of the measured levels. Default: the best one.",
)
@click.option(
    "--replicas",
    metavar="RANGE",
    callback=parsed_by(parse_range),
    help="Language model: number of replicas, such as 2..6; `mlcd replicas` computes it. Default: 1.",
)
@output
def export(run: str, target: str, file: Path | None, folder: Path | None, output: str, **engine: Any) -> None:
    """Write the decision as files for another tool.

    Training: --to skypilot. Functions: --to lambda. ONNX models: --to kserve, triton, mlserver or compose. Language
    models: --to vllm, sglang, compose, kserve, skyserve or dynamo.

    \b
    mlcd export last --to skypilot --file task.yaml
    mlcd export last --to triton --to-dir deploy
    mlcd export last --to skyserve --replicas 2..6
    """
    if file is not None and folder is not None:
        raise UserError("--file and --to-dir: choose one, a single file or a folder for all of them")
    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    task = serving_task(account.job)
    unsuitable = [option for option, value in engine.items() if value is not None]
    if unsuitable and (task is None or task.language is None):
        raise UserError(f"--{unsuitable[0]} is for runs that serve a language model; '{name}' is not one")
    if target in SERVING:
        many = Replicas(*engine["replicas"]) if engine["replicas"] else ONE_REPLICA
        made = made_for(name, account, target, engine["trial"], engine["concurrency"], many)
        _deployment(name, account, target, made, file, folder, output)
        return
    if folder is not None:
        raise UserError(f"--to-dir: an export to {target} is a single file; name it with --file")
    if target == "lambda":
        document, then = lambda_configuration(name, account), ""
        text = json.dumps(document, indent=2) + "\n"
    else:
        document, text, then = task_of(name, account), task_text(name, account), f"; run it with: sky launch {file}"
    if file is not None:
        write_file(file, text, "--file")
    if output == "json":
        print_json(document)
    elif file is not None:
        click.echo(f"Wrote {file}{then}")
    else:
        click.echo(text, nl=False)


def _deployment(
    name: str, account: Account, target: str, export: Export, file: Path | None, folder: Path | None, output: str
) -> None:
    """A serving run as files to deploy. Knobs that the target cannot express are also printed to stderr."""
    model = ""
    if folder is not None:
        for path, text in export.files.items():
            _make(folder / path)
            write_file(folder / path, text, "--to-dir")
        model = _copy_model(deployment_of(name, account), folder / export.model_at) if export.model_at else ""
    elif file is not None:
        write_file(file, export.files[export.main], "--file")
    for note in export.notes:
        click.echo(f"  -  {note}", err=True)
    for knob in export.missing:
        click.echo(f"  -  not in the files: {knob.name} = {knob.value} ({knob.note})", err=True)
    if output == "json":
        print_json(_document(name, target, account, export))
    elif folder is not None:
        click.echo(f"Wrote {', '.join(str(folder / path) for path in export.files)}. {model}")
        click.echo(f"Start it there with: {export.start.replace('DIR', str(folder))}")
    elif file is not None:
        click.echo(f"Wrote {file}, one of {len(export.files)} files; --to-dir writes them all")
    else:
        click.echo(f"  -  one of {len(export.files)} files: --to-dir DIR writes them all", err=True)
        click.echo(export.files[export.main], nl=False)


def _document(name: str, target: str, account: Account, export: Export) -> dict[str, object]:
    own = {knob.name: knob.value for knob in export.knobs}
    chosen = account.decision.configuration if account.decision is not None else None
    return {
        "run": name,
        "to": target,
        "knobs": own if not export.model_at or chosen is None else dict(knobs_of(chosen)),
        "files": dict(export.files),
        "main": export.main,
        "model_at": export.model_at,
        "where": {knob.name: knob.where or None for knob in export.knobs},
        "notes": list(export.notes),
        "not_expressed": [{"knob": knob.name, "value": knob.value, "note": knob.note} for knob in export.missing],
    }


def _copy_model(deployment: Deployment, to: Path) -> str:
    """Copy the model's file, and its separate weights if any, to where the server looks; or say how to do it."""
    source = Path(deployment.path)
    if not deployment.as_it_is:
        if deployment.settings.get("precision") == "int8" and source.is_file():
            return _copy_int8(source, to)
        return f"Put the model at the chosen precision at {to}: README.md says how."
    if not deployment.path or not source.is_file():
        return f"Put the model's file at {to}" + (f": {source} does not exist." if deployment.path else ".")
    _make(to)
    with writing(to, "--to-dir"):
        shutil.copyfile(source, to)
        weights = source.with_name(f"{source.name}.data")
        if weights.is_file():
            shutil.copyfile(weights, to.with_name(weights.name))
    return f"Copied {source} to {to}."


def _copy_int8(source: Path, to: Path) -> str:
    """Copy the int8 model that the trials served; it is made again if it is no longer there."""
    from mlcd.clouds.servers.quantise import at_precision

    try:
        quantised = at_precision(source, "int8", home() / "quantised")
    except UserError as error:
        return f"Put the int8 model at {to}: {error}."
    _make(to)
    with writing(to, "--to-dir"):
        shutil.copyfile(quantised, to)
    return f"Copied {source}, quantised to int8, to {to}."


def _make(path: Path) -> None:
    """Make the folder of this file."""
    with writing(path.parent, "--to-dir"):
        path.parent.mkdir(parents=True, exist_ok=True)
