"""A command line as an order to a server: what is sent is what was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcd.cli.options import read_job
from mlcd.cli.server import words

if TYPE_CHECKING:
    from mlcd.service.remote import Order


def order_of_file(kind: str, path: Path, chosen: Mapping[str, Any]) -> Order:
    """A job file and its options, to be sent. They are read here first: a mistake is told by its line in the file."""
    from mlcd.service.remote import Order

    read_job(kind, path, chosen)
    return Order(kind, words(chosen), path.read_text(encoding="utf-8"), path.name)


def order_of_model(model: str, chosen: Mapping[str, Any]) -> Order:
    """A model to be served, and what is asked of it, to be sent."""
    from mlcd.planners.serve.knobs_file import load_knobs
    from mlcd.service.remote import Order

    knobs: Path | None = chosen.get("knobs")
    if knobs is not None:
        load_knobs(knobs)
    text = knobs.read_text(encoding="utf-8") if knobs is not None else None
    return Order("serve", words(chosen), model=model, knobs=text)
