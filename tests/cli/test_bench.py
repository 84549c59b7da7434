"""`mlcd bench train`: its numbers are what anyone gets from the recording, the probes and the choice."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Mlcd = Callable[..., Any]

KEYS = {
    "recording", "scenario", "limit_factor", "limit", "method", "seed", "probes", "chosen", "certified", "probing_usd",
    "probing_hours", "total_usd", "total_hours", "oracle_usd", "oracle_hours", "ratio", "violated",
}  # fmt: skip
WORK, BASE_S, EXTRA_S = 2_000_000, 300, 30
OPTIONS = ["--seeds", "3", "--noise", "0.03", "--processes", "1"]


class Book:
    """The recording, read without our code."""

    def __init__(self, folder: Path) -> None:
        with (folder / "points.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.ok = {(r["instance_type"], int(r["nodes"])): r["outcome"] == "ok" for r in rows}
        self.price = {(r["instance_type"], int(r["nodes"])): int(r["nodes"]) * float(r["usd_per_hour"]) for r in rows}
        self.hours = {
            (r["instance_type"], int(r["nodes"])): WORK / float(r["samples_per_s"]) / 3_600
            for r in rows
            if r["outcome"] == "ok"
        }
        self.usd = {place: hours * self.price[place] for place, hours in self.hours.items()}

    def probing(self, probes: list[dict[str, Any]]) -> tuple[float, float]:
        """Hours and dollars of these probes, one after the other."""
        hours = usd = 0.0
        for probe in probes:
            place = (probe["instance_type"], probe["nodes"])
            seconds = BASE_S + EXTRA_S * (probe["nodes"] - 1) / 3
            took = seconds / 3_600 * (1 if self.ok[place] else 0.5)
            hours += took
            usd += took * self.price[place]
        return hours, usd


@pytest.fixture
def runs(mlcd: Mlcd, recording: Path) -> list[dict[str, Any]]:
    answer = mlcd("bench", "train", recording, "--limit-factor", "1.5,3", *OPTIONS, "-o", "json")
    assert answer.code == 0
    found: list[dict[str, Any]] = answer.document["runs"]
    return found


def test_there_is_a_run_for_every_scenario_factor_and_seed(runs: list[dict[str, Any]]) -> None:
    asked = {(run["scenario"], run["limit_factor"], run["seed"]) for run in runs}
    limited = {
        (scenario, factor, seed)
        for scenario in ("cheapest-by-deadline", "fastest-within-budget")
        for factor in (1.5, 3.0)
        for seed in range(3)
    }
    assert asked == limited | {("fastest", None, seed) for seed in range(3)}
    assert len(runs) == len(asked)
    for run in runs:
        assert set(run) == KEYS
        assert (run["recording"], run["method"]) == ("tiny", "net-value")
        assert (run["limit"] is None) == (run["limit_factor"] is None)
        for i, probe in enumerate(run["probes"]):
            assert set(probe) == {"instance_type", "nodes", "fraction", "round"}
            assert (probe["fraction"], probe["round"]) == (1, i)


def test_its_numbers_follow_from_the_recording_the_probes_and_the_choice(
    runs: list[dict[str, Any]], recording: Path
) -> None:
    book = Book(recording)
    for run in runs:
        hours, usd = book.probing(run["probes"])
        assert (run["probing_hours"], run["probing_usd"]) == pytest.approx((hours, usd))
        within = list(book.hours)
        by_deadline, in_budget = run["scenario"] == "cheapest-by-deadline", run["scenario"] == "fastest-within-budget"
        if by_deadline:
            assert run["limit"] == pytest.approx(run["limit_factor"] * min(book.hours.values()))
            within = [place for place in within if book.hours[place] <= run["limit"]]
        if in_budget:
            assert run["limit"] == pytest.approx(run["limit_factor"] * min(book.usd.values()))
            within = [place for place in within if book.usd[place] <= run["limit"]]
        oracle = min(within, key=book.usd.__getitem__ if by_deadline else book.hours.__getitem__)
        assert (run["oracle_hours"], run["oracle_usd"]) == pytest.approx((book.hours[oracle], book.usd[oracle]))
        if run["chosen"] is None:
            assert run["ratio"] is None
            assert not run["certified"]
        else:
            chosen = tuple(run["chosen"])
            hours, usd = hours + book.hours[chosen], usd + book.usd[chosen]
            ratio = usd / book.usd[oracle] if by_deadline else hours / book.hours[oracle]
            assert run["ratio"] == pytest.approx(ratio)
        assert (run["total_hours"], run["total_usd"]) == pytest.approx((hours, usd))
        over = (by_deadline and hours > run["limit"]) or (in_budget and usd > run["limit"])
        assert run["violated"] == over
        assert not (run["certified"] and run["violated"])


def test_more_processes_only_make_it_faster(mlcd: Mlcd, recording: Path, runs: list[dict[str, Any]]) -> None:
    more = [*OPTIONS[:-1], "2"]
    assert mlcd("bench", "train", recording, "--scenario", "all", *more, "-o", "json").document["runs"] == runs


@pytest.mark.night
def test_a_table_sums_it_up_for_a_person(mlcd: Mlcd, recording: Path) -> None:
    shown = mlcd("bench", "train", recording, recording, "--scenario", "fastest", "--method", "all", *OPTIONS)
    assert shown.code == 0
    assert "METHOD" in shown.out
    assert "2 recordings, seeds 0..2, noise 0.03" in shown.out
