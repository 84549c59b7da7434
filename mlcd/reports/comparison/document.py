"""A comparison as a document: what `mlcd compare -o json` prints, the API answers, and the pages show."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mlcd.core.part import Part
from mlcd.reports.view.summary import Summary


class ComparedCell(Part):
    """What is to be said of one run."""

    words: str = Field(description="In words; a dash for nothing.")
    note: str = Field(default="", description="A few words below.")


class ComparedRow(Part):
    """One thing, of every run."""

    name: str = Field(description="What it is.")
    cells: list[ComparedCell] = Field(description="One for each run, in order.")
    differs: bool = Field(description="Whether not all runs have the same.")


class ComparedSection(Part):
    """Rows that belong together."""

    title: str = Field(description="Their heading.")
    rows: list[ComparedRow] = Field(description="From top to bottom.")
    left_out: int = Field(default=0, description="How many more rows there would be.")


class PathPoint(Part):
    """Something better than all before it was found."""

    usd: float = Field(description="Dollars that were spent by then.")
    value: float = Field(description="How good it is.")
    label: str = Field(description="What it is.")


class ComparedPaths(Part):
    """What the best so far is told by."""

    name: str = Field(description="Such as: time to finish.")
    unit: Literal["s", "usd", "rate", "loss"] = Field(description="Seconds, dollars, answers a second, or a loss.")
    lower_is_better: bool = Field(description="Whether less is better.")


class ComparedRun(Part):
    """A run among others. Amounts are null where there is nothing to say yet."""

    summary: Summary = Field(description="Its line in the list of runs.")
    headline: str = Field(description="Its answer in one line.")
    certified: bool | None = Field(description="Whether its choice is certified; null where nothing is decided.")
    total_s: float | None = Field(description="Seconds in all: what it took, or is expected to take.")
    total_usd: float | None = Field(description="Dollars in all: what it cost, or is expected to cost.")
    probes: int = Field(description="Probes that were made.")
    probing_usd: float = Field(description="Dollars that probes cost.")
    probing_s: float = Field(description="Seconds that probes took, one after the other.")
    final_usd: float = Field(description="Dollars that the job itself has cost so far.")
    final_s: float = Field(description="Seconds that the job itself took so far.")
    path: list[PathPoint] = Field(description="The best so far; empty where it cannot be compared.")


class Comparison(Part):
    """Runs side by side."""

    runs: list[ComparedRun] = Field(description="In the order in which they were asked for.")
    sections: list[ComparedSection] = Field(description="Answers, certificates, limits and costs.")
    probed: ComparedSection = Field(description="What each configuration showed; those that most runs tried first.")
    job: ComparedSection = Field(description="The jobs by the keys of the job file: those that differ first.")
    paths: ComparedPaths | None = Field(description="What `path` of the runs is about; null where they share nothing.")
    notes: list[str] = Field(description="What cannot be compared, and why.")
