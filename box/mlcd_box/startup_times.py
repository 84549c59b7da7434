"""Measures how long launches take from the order to the job's first progress, and how that time divides up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from mlcd_box.events import Event


@dataclass(frozen=True)
class StartupTime:
    """The startup time of a launch, in three parts, in seconds.

    `ordering`: SkyPilot takes the order and sends it to the cloud.
    `booting`: the cloud boots the machines, until the last one runs.
    `preparing`: SkyPilot logs in, installs its runtime and copies files; the job does its setup and first step.
    """

    ordering: float
    booting: float
    preparing: float

    @property
    def total(self) -> float:
        """From the order to the first progress."""
        return self.ordering + self.booting + self.preparing


def startup_times(launches: Path, events: Sequence[Event]) -> Iterator[StartupTime]:
    """The startup times of all launches in this folder whose jobs have reported progress."""
    running = {event["id"]: float(event["t"]) for event in events if event["kind"] == "running"}
    for first_report in launches.glob("*/first_report"):
        order = json.loads((first_report.parent / "order.json").read_text(encoding="utf-8"))
        mine = [event for event in events if event["kind"] == "started" and event["tags"]["mlcd"] == order["cluster"]]
        up = [running[event["id"]] for event in mine if event["id"] in running]
        if not up:
            continue
        requested, booted = min(float(event["t"]) for event in mine), max(up)
        yield StartupTime(requested - order["started_at"], booted - requested, first_report.stat().st_mtime - booted)


def summary(measured: Sequence[StartupTime]) -> str:
    """A summary with medians, in one sentence."""
    if not measured:
        return ""
    ordering, booting, preparing = (
        median(getattr(each, part) for each in measured) for part in ("ordering", "booting", "preparing")
    )
    totals = sorted(each.total for each in measured)
    return (
        f"From the order to the first progress, {len(measured)} launches: {totals[0]:.0f} to {totals[-1]:.0f} s, "
        f"median {median(totals):.0f} s; of it SkyPilot's order {ordering:.0f} s, the machines' boot {booting:.0f} s, "
        f"SkyPilot's runtime, files and the job's start {preparing:.0f} s (medians)"
    )
