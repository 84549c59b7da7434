"""The document of a run: `-o json`, the API and the pages are views of it, and `mlcd schema run` prints its schema.

Every run has the properties of `RunCore`; `planner` says which others it has. A run of a planner that comes with
another package is an `OtherRun`, and shows itself by facts, tables and figures. `mlcd.reports.document` makes them.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, TypeAdapter

from mlcd.core.part import Part
from mlcd.reports.run_document.core import LaunchResult, RunCore, RunDecision, ScaleRun, TrainRun
from mlcd.reports.run_document.serve import ServeRun
from mlcd.reports.run_document.tune import TuneRun

__all__ = ["NotBegun", "OtherRun", "RunDocument", "ScaleRun", "TrainRun"]


class OtherLaunch(LaunchResult):
    """A probe of a planner of another package."""

    label: str = Field(description="The name of its configuration.")


class OtherRun(RunCore):
    """A run of a planner of another package."""

    probes: list[OtherLaunch] = Field(description="Every probe, in order.")
    decision: RunDecision | None = Field(description="What the search ended with; null while it goes on.")
    part: dict[str, Any] = Field(description="What the planner says of it, for programs.")


class NotBegun(Part):
    """A run that was asked for and has not begun, or never will."""

    run: str | None = Field(description="The run's name.")
    status: str = Field(description="queued or refused; empty, where the ledger has no entry.")
    job: str = Field(default="", description="The job's name.")


RunDocument = TrainRun | ScaleRun | ServeRun | TuneRun | OtherRun


def run_schema() -> dict[str, Any]:
    """JSON Schema of what `mlcd show -o json` prints."""
    schema = TypeAdapter(RunDocument).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "RunDocument", **schema}
