"""How long a launch takes from its order to the first progress of its job, and whose time that is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from mlcd_box.events import Event


@dataclass(frozen=True)
class Startup:
    """The parts, in seconds.

    `ordering`: SkyPilot takes the order and asks the cloud.
    `booting`: the cloud, until the last machine runs.
    `preparing`: SkyPilot logs in, installs its runtime and copies files; the job's setup and its first step.
    """

    ordering: float
    booting: float
    preparing: float

    @property
    def total(self) -> float:
        """From the order to the first progress."""
        return self.ordering + self.booting + self.preparing


def startups(launches: Path, events: Sequence[Event]) -> Iterator[Startup]:
    """Of every launch in MLCD's folder whose job has reported."""
    running = {event["id"]: float(event["t"]) for event in events if event["kind"] == "running"}
    for first_report in launches.glob("*/first_report"):
        order = json.loads((first_report.parent / "order.json").read_text(encoding="utf-8"))
        mine = [event for event in events if event["kind"] == "started" and event["tags"]["mlcd"] == order["cluster"]]
        up = [running[event["id"]] for event in mine if event["id"] in running]
        if not up:
            continue
        asked, booted = min(float(event["t"]) for event in mine), max(up)
        yield Startup(asked - order["started_at"], booted - asked, first_report.stat().st_mtime - booted)


def summary(measured: Sequence[Startup]) -> str:
    """Medians, in a sentence."""
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
