"""mlcd models: list, show, export and delete the models that runs of `mlcd scale` have learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from pydantic import TypeAdapter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.cli.console import plain_table
from mlcd.cli.options import FILE, consoles, output, print_answer, print_json, write_file
from mlcd.cli.server import chosen_server
from mlcd.core.errors import UnknownName
from mlcd.core.home import home
from mlcd.core.units import counted, format_count, format_usd
from mlcd.memory.models import FileModelStore, StoredModel
from mlcd.memory.record_store import UnreadableRecord
from mlcd.planners.modeling.performance import interval_factor, local_batch, read_performance_model
from mlcd.service.remote.server import path_of

MOST_COLUMNS = 6
"""Most columns, one for each number of nodes."""
Row = dict[str, Any]
model_name = click.argument("name")


@click.group(invoke_without_command=True)
@output
@click.pass_context
def models(ctx: click.Context, output: str) -> None:
    """List what runs of `mlcd scale` have learned.

    \b
    mlcd models
    """
    if ctx.invoked_subcommand is not None:
        return
    stored, broken = _all()
    if output == "json":
        listed = [{"name": name, **_document(one)} for name, one in stored.items()]
        print_json({"models": listed, "unreadable": [{"name": b.name, "because": b.because} for b in broken]})
        return
    results, progress = consoles()
    if stored:
        results.print(_models_table(stored))
    elif not broken:
        results.print("No models yet. Each run of mlcd scale stores one.")
    for each in broken:
        progress.print(f"mlcd: {each.because}", markup=False, soft_wrap=True)


@models.command()
@model_name
@output
def show(name: str, output: str) -> None:
    """Show what a learned model predicts, and where it was learned.

    It predicts the epochs for each batch size, and the time of a step for each number of nodes and batch size.

    \b
    mlcd models show NAME
    """
    stored = _one(name)
    epochs, steps = _predictions(stored)
    if output == "json":
        print_json({"name": name, **_document(stored), "epochs_by_batch": epochs, "steps": steps})
        return
    results, _ = consoles()
    _print_facts(results, name, stored)
    results.print(_predictions_table(epochs, steps))
    results.print("Intervals are 90 % intervals.", style="dim")


@models.command()
@model_name
@click.argument("file", required=False, type=FILE)
def export(name: str, file: Path | None) -> None:
    """Write a learned model as JSON, to stdout or to FILE.

    \b
    mlcd models export NAME model.json
    """
    stored = _one(name)  # checks that it can be read
    if chosen_server() is None:
        body = _files().path(name).read_text(encoding="utf-8")
    else:
        body = json.dumps(_document(stored), indent=2) + "\n"
    if file is None:
        click.echo(body, nl=False)
        return
    write_file(file, body, "FILE")
    click.echo(f"Wrote {file}.")


@models.command()
@model_name
@output
def forget(name: str, output: str) -> None:
    """Delete a learned model, readable or not.

    Runs and the ledger are not changed.

    \b
    mlcd models forget NAME
    """
    if (server := chosen_server()) is None:
        path = _files().path(name)
        _files().forget(name)
        print_answer(output, f"Deleted the model {name}: {path}", {"forgotten": name, "path": str(path)})
        return
    stored, broken = _all()
    known = {*stored, *(each.name for each in broken)}
    if name not in known:  # a slash in a name would change the path
        raise UnknownName("stored model", name, known)
    server.send("DELETE", path_of("models", name))
    print_answer(output, f"Deleted the model {name}.", {"forgotten": name})


def _files() -> FileModelStore:
    return FileModelStore(home() / "models")


def _all() -> tuple[dict[str, StoredModel], list[UnreadableRecord]]:
    """All models, of this machine or of the chosen server."""
    if (server := chosen_server()) is None:
        return _files().all()
    answer, read = server.get("/models"), TypeAdapter(StoredModel)
    with server.reading():
        stored = {str(each.pop("name")): read.validate_python(each) for each in answer["models"]}
        return stored, [UnreadableRecord(each["name"], each["because"]) for each in answer["unreadable"]]


def _one(name: str) -> StoredModel:
    if chosen_server() is None:
        return _files().load(name)
    stored, _ = _all()
    if name not in stored:
        raise UnknownName("stored model", name, stored)
    return stored[name]


def _document(stored: StoredModel) -> Row:
    """The model as in its file."""
    document: Row = TypeAdapter(StoredModel).dump_python(stored, mode="json")
    return document


def _models_table(stored: dict[str, StoredModel]) -> Table:
    columns = ("NAME", "LEARNED (UTC)", "CLOUD", "ARCHITECTURE", "DATA", "OPTIMISER", "MACHINES", "TARGET")
    table = plain_table(columns, ["EPOCHS"])
    for name, one in stored.items():
        job = one.identity.fingerprint
        cells = (
            name,
            f"{one.saved_at:%Y-%m-%d %H:%M}",
            str(one.provenance),
            job.architecture or "-",
            job.data or "-",
            job.optimizer or "-",
            ", ".join(machine.instance_type for machine in one.machines),
            str(one.target or "-"),
            "-" if one.epochs is None else f"{one.epochs:.3g}",
        )
        table.add_row(*map(escape, cells))
    return table


def _print_facts(results: Console, name: str, stored: StoredModel) -> None:
    identity, job = stored.identity, stored.identity.fingerprint
    details = [job.architecture or "an unknown architecture", f"on {job.data or 'unknown data'}"]
    details += [f"by {job.optimizer}"] if job.optimizer else []
    details += [f"{format_count(identity.parameters)} parameters"] if identity.parameters else []
    details += [f"{format_count(identity.dataset_samples)} samples an epoch"] if identity.dataset_samples else []
    machines = [
        f"{m.instance_type} at {format_usd(m.usd_per_hour)} an hour, {counted(m.devices, 'device')} a node"
        for m in stored.machines
    ]
    reached = "not reached" if stored.epochs is None else f"reached after {stored.epochs:.3g} epochs"
    facts = {
        "Model": name,
        "Learned": f"{stored.saved_at:%Y-%m-%d %H:%M} UTC by run {stored.run} ({stored.provenance})",
        "Job": f"{identity.job}: {', '.join(details)}",
        "Machines": "; ".join(machines),
        "Target": f"{stored.target}, {reached}" if stored.target is not None else "none",
        "Epochs": stored.model["epochs"]["evidence"],
        "Written by": f"MLCD {stored.version}, format {stored.format}",
    }
    for fact, words in facts.items():
        results.print(f"{fact:<11}{words}", markup=False, soft_wrap=True)
    results.print()


def _predictions(stored: StoredModel) -> tuple[list[Row], list[Row]]:
    """The predicted epochs of each batch, and the time of a step for each number of nodes and batch."""
    model = stored.learned(read_performance_model)
    batches = np.array(stored.batches, dtype=float)
    values, errors = model.epochs.predict(batches)
    relative = model.epochs.reference_epochs is None
    epochs = [
        {"batch": int(b), "epochs": float(e), "relative": relative, "interval_factor": float(factor)}
        for b, e, factor in zip(batches, values, interval_factor(np.zeros_like(errors), errors), strict=True)
    ]
    pairs = [(n, b) for n in stored.nodes for b in stored.batches if b % (n * model.devices_per_node) == 0]
    if not pairs:
        return epochs, []
    nodes, batch = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    seconds, errors = model.steps.predict(nodes, local_batch(nodes, batch, model.devices_per_node))
    steps = [
        {"nodes": n, "batch": b, "seconds": float(s), "interval_factor": float(factor)}
        for (n, b), s, factor in zip(pairs, seconds, interval_factor(errors, np.zeros_like(errors)), strict=True)
    ]
    return epochs, steps


def _predictions_table(epochs: list[Row], steps: list[Row]) -> Table:
    """A row for each batch: its epochs, and the time of its steps on some numbers of nodes."""
    nodes = sorted({row["nodes"] for row in steps})
    shown = nodes[:: -(-len(nodes) // MOST_COLUMNS)] if nodes else []
    table = plain_table((), ("BATCH", "EPOCHS", *(f"STEP ON {n} NODE{'S' * (n > 1)}" for n in shown)))
    by_place = {(row["nodes"], row["batch"]): row for row in steps}
    for row in epochs:
        mark = "x" if row["relative"] else ""
        cells = [by_place.get((count, row["batch"])) for count in shown]
        table.add_row(
            str(row["batch"]),
            f"{mark}{row['epochs']:.3g} ± {_percent(row)}",
            *("-" if cell is None else f"{1_000 * cell['seconds']:,.4g} ms ± {_percent(cell)}" for cell in cells),
        )
    return table


def _percent(row: Row) -> str:
    return f"{100 * (row['interval_factor'] - 1):.0f} %"
