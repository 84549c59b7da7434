"""Prints a learned model: where it was learned, and what it predicts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.core.units import format_count, format_usd
from mlcd.memory.models import StoredModel
from mlcd.planners.modeling.performance import interval_factor, local_batch, read_performance_model

MOST_COLUMNS = 6
"""Most numbers of nodes that are shown as columns."""
Row = dict[str, Any]


def models_table(stored: dict[str, StoredModel]) -> Table:
    """All models, a row for each."""
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in ("NAME", "LEARNED (UTC)", "CLOUD", "ARCHITECTURE", "DATA", "OPTIMISER", "MACHINES", "TARGET"):
        table.add_column(column, no_wrap=True)
    table.add_column("EPOCHS", justify="right", no_wrap=True)
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
        table.add_row(*(escape(cell) for cell in cells))
    return table


def print_facts(results: Console, name: str, stored: StoredModel) -> None:
    """Print where a model was learned, a line for each fact."""
    identity, job = stored.identity, stored.identity.fingerprint
    details = [job.architecture or "an unknown architecture", f"on {job.data or 'unknown data'}"]
    details += [f"by {job.optimizer}"] if job.optimizer else []
    details += [f"{format_count(identity.parameters)} parameters"] if identity.parameters else []
    details += [f"{format_count(identity.dataset_samples)} samples an epoch"] if identity.dataset_samples else []
    machines = [
        f"{m.instance_type} at {format_usd(m.usd_per_hour)} an hour, {m.devices} device{'s' * (m.devices > 1)} a node"
        for m in stored.machines
    ]
    reached = "not reached" if stored.epochs is None else f"reached after {stored.epochs:.3g} epochs"
    facts = [
        ("Model", name),
        ("Learned", f"{stored.saved_at:%Y-%m-%d %H:%M} UTC by run {stored.run} ({stored.provenance})"),
        ("Job", f"{identity.job}: {', '.join(details)}"),
        ("Machines", "; ".join(machines)),
        ("Target", f"{stored.target}, {reached}" if stored.target is not None else "none"),
        ("Epochs", stored.model["epochs"]["evidence"]),
        ("Written by", f"MLCD {stored.version}, format {stored.format}"),
    ]
    for fact, words in facts:
        results.print(f"{fact:<11}{words}", highlight=False, markup=False, soft_wrap=True)
    results.print()


def predictions(stored: StoredModel) -> tuple[list[Row], list[Row]]:
    """The predicted epochs of each batch, and the time of a step for each number of nodes and batch."""
    model = stored.learned(read_performance_model)
    batches = np.array(stored.batches, dtype=float)
    values, errors = model.epochs.predict(batches)
    relative = model.epochs.reference_epochs is None
    epochs = [
        {
            "batch": int(b),
            "epochs": float(e),
            "relative": relative,
            "interval_factor": float(factor),
        }
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


def predictions_table(epochs: list[Row], steps: list[Row]) -> Table:
    """A row for each batch: its epochs, and the time of its steps on some numbers of nodes."""
    nodes = sorted({row["nodes"] for row in steps})
    shown = nodes[:: -(-len(nodes) // MOST_COLUMNS)] if nodes else []
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    table.add_column("BATCH", justify="right")
    table.add_column("EPOCHS", justify="right", no_wrap=True)
    for count in shown:
        table.add_column(f"STEP ON {count} NODE{'S' * (count > 1)}", justify="right", no_wrap=True)
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


def document(stored: StoredModel) -> dict[str, Any]:
    """The model as in its file."""
    as_dict: dict[str, Any] = json.loads(TypeAdapter(StoredModel).dump_json(stored))
    return as_dict
