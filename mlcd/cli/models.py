"""mlcd models: list, show, export and delete what elastic runs have learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, output, print_json
from mlcd.cli.server import chosen_server

if TYPE_CHECKING:
    from mlcd.memory.models import InFiles, StoredModel
    from mlcd.memory.shelf import Unreadable
    from mlcd.service.remote import Server

model_name = click.argument("name")


@click.group(invoke_without_command=True)
@output
@click.pass_context
def models(ctx: click.Context, output: str) -> None:
    """What runs of `mlcd scale` have learned.

    \b
    mlcd models
    """
    if ctx.invoked_subcommand is None:
        _list(output)


@models.command()
@model_name
@output
def show(name: str, output: str) -> None:
    """What a model predicts, and where it was learned.

    Epochs by batch, and the time of a step by nodes and batch.

    \b
    mlcd models show NAME
    """
    from mlcd.cli.model_tables import document, predictions, predictions_table, print_facts

    stored = _one(name)
    epochs, steps = predictions(stored)
    if output == "json":
        print_json({"name": name, **document(stored), "epochs_by_batch": epochs, "steps": steps})
        return
    results, _ = consoles()
    print_facts(results, name, stored)
    results.print(predictions_table(epochs, steps))
    results.print("Intervals hold nine times of ten.", style="dim")


@models.command()
@model_name
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def export(name: str, file: Path | None) -> None:
    """A model as JSON, to stdout or to FILE.

    \b
    mlcd models export NAME model.json
    """
    from mlcd.cli.model_tables import document
    from mlcd.core.errors import UserError

    stored = _one(name)  # checks that it can be read
    if chosen_server() is None:
        body = _files().path(name).read_text(encoding="utf-8")
    else:
        body = json.dumps(document(stored), indent=2) + "\n"
    if file is None:
        click.echo(body, nl=False)
        return
    try:
        file.write_text(body, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}; choose another file") from error
    click.echo(f"Wrote {file}.")


@models.command()
@model_name
@output
def forget(name: str, output: str) -> None:
    """Delete a model, readable or not.

    Runs and their ledger stay as they are.

    \b
    mlcd models forget NAME
    """
    if (server := chosen_server()) is not None:
        _delete_remote(server, name)
        document, words = {"forgotten": name}, f"Forgot {name}."
    else:
        path = _files().path(name)
        _files().forget(name)
        document, words = {"forgotten": name, "path": str(path)}, f"Forgot {name}: {path} is deleted."
    if output == "json":
        print_json(document)
    else:
        click.echo(words)


def _delete_remote(server: Server, name: str) -> None:
    from mlcd.core.errors import UnknownName
    from mlcd.service.remote.server import path_of

    stored, broken = _all()
    known = {*stored, *(each.name for each in broken)}
    if name not in known:  # a slash in a name would change the path
        raise UnknownName("stored model", name, known)
    server.send("DELETE", path_of("models", name))


def _files() -> InFiles:
    from mlcd.core.home import home
    from mlcd.memory.models import InFiles

    return InFiles(home() / "models")


def _all() -> tuple[dict[str, StoredModel], list[Unreadable]]:
    """All models, of this machine or of the chosen server."""
    from pydantic import TypeAdapter

    from mlcd.memory.models import StoredModel
    from mlcd.memory.shelf import Unreadable

    if (server := chosen_server()) is None:
        return _files().all()
    answer, read = server.get("/models"), TypeAdapter(StoredModel)
    with server.reading():
        stored = {str(each.pop("name")): read.validate_python(each) for each in answer["models"]}
        return stored, [Unreadable(each["name"], each["because"]) for each in answer["unreadable"]]


def _one(name: str) -> StoredModel:
    from mlcd.core.errors import UnknownName

    if chosen_server() is None:
        return _files().load(name)
    stored, _ = _all()
    if name not in stored:
        raise UnknownName("stored model", name, stored)
    return stored[name]


def _list(output: str) -> None:
    from mlcd.cli.model_tables import document, models_table

    stored, broken = _all()
    if output == "json":
        listed = [{"name": name, **document(one)} for name, one in stored.items()]
        print_json({"models": listed, "unreadable": [{"name": b.name, "because": b.because} for b in broken]})
        return
    results, progress = consoles()
    if stored:
        results.print(models_table(stored))
    elif not broken:
        results.print("No model yet. A run of mlcd scale leaves one behind.", highlight=False)
    for each in broken:
        progress.print(f"mlcd: {each.because}", highlight=False, markup=False, soft_wrap=True)
