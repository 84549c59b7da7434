"""Searches on recorded clouds for the members of a team, each with another job, budget and seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from mlcd.clouds.recording import load_recording


@dataclass(frozen=True)
class SearchJob:
    """A job file, and its budget."""

    text: str
    budget_usd: float


def make_searches(recordings: Path, number: int, chance: random.Random) -> list[SearchJob]:
    """Make so many searches; budgets are 1.2 to 6 times the cheapest configuration's cost of the whole job."""
    folders = sorted(path for path in recordings.iterdir() if (path / "recording.yaml").is_file())
    cheapest = {folder.name: _cheapest_usd(folder) for folder in folders}
    return [_order(chance.choice(folders).name, cheapest, chance) for _ in range(number)]


def _order(name: str, cheapest: dict[str, tuple[float, float]], chance: random.Random) -> SearchJob:
    work, least_usd = cheapest[name]
    budget = round(least_usd * chance.uniform(1.2, 6.0), 2) + 0.01
    lines = [
        f"name: {name}",
        "run: python train.py",
        "mlcd:",
        f"  work: {work:g}",
        "  goal: fastest",
        f"  budget: ${budget:.2f}",
        f"  on: recorded:{name}",
        f"  search: {{seed: {chance.randrange(1_000_000)}, nodes: 1..1000}}",
    ]
    return SearchJob("\n".join(lines) + "\n", budget)


def _cheapest_usd(folder: Path) -> tuple[float, float]:
    recording = load_recording(folder)
    costs = [
        where.usd(recording.work_samples / point.samples_per_s)
        for where, point in recording.points.items()
        if point.samples_per_s
    ]
    return recording.work_samples, min(costs)
