"""Turns a command line into a submission to a server: options are sent as typed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcd.cli.options import read_job
from mlcd.cli.server import typed_options

if TYPE_CHECKING:
    from mlcd.service.remote import Submission


def submission_of_file(kind: str, path: Path, chosen: Mapping[str, Any]) -> Submission:
    """A job file and its options. They are parsed here first, so that a mistake is reported with its line."""
    from mlcd.service.remote import Submission

    read_job(kind, path, chosen)
    return Submission(kind, typed_options(chosen), path.read_text(encoding="utf-8"), path.name)


def submission_of_model(model: str, chosen: Mapping[str, Any]) -> Submission:
    """A model to serve, and its options."""
    from mlcd.planners.serve.space import load_knobs
    from mlcd.service.remote import Submission

    knobs: Path | None = chosen.get("knobs")
    if knobs is not None:
        load_knobs(knobs)
    text = knobs.read_text(encoding="utf-8") if knobs is not None else None
    return Submission("serve", typed_options(chosen), model=model, knobs=text)
