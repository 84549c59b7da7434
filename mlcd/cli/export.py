"""mlcd export: the decision as files that another tool runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click

from mlcd.cli.options import FILE, open_ledger, output, print_json, run_name, write_file, writing
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.ledger import Account
from mlcd.reports.deploy.deployment import Deployment, Export, deployment_of
from mlcd.reports.deploy.lambda_ import lambda_configuration
from mlcd.reports.deploy.targets import TARGETS
from mlcd.reports.skypilot import task_of, task_text


@click.command()
@run_name
@click.option(
    "--to",
    "target",
    type=click.Choice(("skypilot", *TARGETS, "lambda")),
    required=True,
    help="The tool that will run it.",
)
@click.option("--file", "file", type=FILE, help="Write here, not to stdout.")
@click.option(
    "--to-dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Of a serving run: write all the files into this folder, and the model's beside them.",
)
@output
def export(run: str, target: str, file: Path | None, folder: Path | None, output: str) -> None:
    """The decision as files for another tool.

    A training run goes --to skypilot, a serving run --to kserve, triton, mlserver or compose, one on functions
    --to lambda.

    \b
    mlcd export last --to skypilot --file task.yaml
    mlcd export last --to triton --to-dir deploy
    """
    if file is not None and folder is not None:
        raise UserError("--file and --to-dir: choose one, a single file or a folder for all of them")
    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    if target in TARGETS:
        _deployment(name, account, target, file, folder, output)
        return
    if folder is not None:
        raise UserError(f"--to-dir: for {target} it is one file; name it with --file")
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


def _deployment(name: str, account: Account, target: str, file: Path | None, folder: Path | None, output: str) -> None:
    """A serving run as files to deploy. Knobs that the target cannot express are also printed to stderr."""
    deployment = deployment_of(name, account)
    export = TARGETS[target](deployment)
    model = ""
    if folder is not None:
        for path, text in export.files.items():
            _make(folder / path)
            write_file(folder / path, text, "--to-dir")
        model = _copy_model(deployment, folder / export.model_at)
    elif file is not None:
        write_file(file, export.files[export.main], "--file")
    for note in export.notes:
        click.echo(f"  -  {note}", err=True)
    for knob in export.missing:
        click.echo(f"  -  not in the files: {knob.name} = {knob.value}: {knob.note}", err=True)
    if output == "json":
        print_json(_document(name, target, deployment, export))
    elif folder is not None:
        click.echo(f"Wrote {', '.join(str(folder / path) for path in export.files)}. {model}")
        click.echo(f"Start it there with: {export.start.replace('DIR', str(folder))}")
    elif file is not None:
        click.echo(f"Wrote {file}, one of {len(export.files)} files; --to-dir writes them all")
    else:
        click.echo(f"  -  one of {len(export.files)} files: --to-dir DIR writes them all", err=True)
        click.echo(export.files[export.main], nl=False)


def _document(name: str, target: str, deployment: Deployment, export: Export) -> dict[str, object]:
    return {
        "run": name,
        "to": target,
        "knobs": dict(deployment.knobs),
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
