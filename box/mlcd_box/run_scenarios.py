"""Runs scenarios, possibly several at a time, and prints the table."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass

import click

from mlcd_box.boxes import Box
from mlcd_box.cloud.functions.runtime import runtime
from mlcd_box.events import read_events
from mlcd_box.harness import Harness, Outcome, outcome
from mlcd_box.image import image
from mlcd_box.scenarios import SCENARIOS
from mlcd_box.startup_times import StartupTime, startup_times, summary

HEAD = f"{'SCENARIO':<76} LAUNCHES   LEDGER $    CLOUD $  LEFT  GONE AFTER  TOOK    VERDICT"


@dataclass(frozen=True)
class ScenarioResult:
    """The result of a scenario. `launches`: how long each of its launches took to start."""

    row: str
    launches: tuple[StartupTime, ...]
    passed: bool


def run_scenarios(names: Sequence[str], times: int, at_once: int, keep: bool) -> int:
    """Run scenarios and return the exit code: 0 if all passed. A row is printed as soon as its scenario is over."""
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise click.UsageError(f"no scenario '{unknown[0]}'; there are {', '.join(SCENARIOS)}")
    image()
    runtime()  # built before the boxes start, or all of them would begin to build it
    click.echo(HEAD)
    results: list[ScenarioResult] = []
    with ProcessPoolExecutor(at_once) as processes:
        runs = [processes.submit(run_scenario, name, n, keep) for name in names or SCENARIOS for n in range(times)]
        for done in as_completed(runs):
            results.append(done.result())
            click.echo(results[-1].row)
    click.echo(summary([startup for each in results for startup in each.launches]))
    return 0 if all(each.passed for each in results) else 1


def run_scenario(name: str, number: int, keep: bool) -> ScenarioResult:
    """Run one scenario in a fresh box."""
    scenario, box = SCENARIOS[name], Box(f"test-{name}-{number}" if number else f"test-{name}")
    harness, began_s = Harness(box, box.folder.parent / f"{box.name}-harness"), time.monotonic()
    shutil.rmtree(harness.folder, ignore_errors=True)
    with suppress(click.ClickException):
        box.down()
    box.up()
    verdict, gone_s, costs = "", 0.0, None
    try:
        scenario(harness)
        gone_s = harness.wait_until_nothing_is_left()
        costs = outcome(harness)
        verdict = costs.verdict()
    except Exception as error:  # any error is the scenario's verdict; the next scenario is run
        verdict = f"{type(error).__name__}: {error}".strip().splitlines()[0][:120]
        (box.folder / "failure.txt").write_text(traceback.format_exc())
    launches = tuple(startup_times(box.home / ".mlcd" / "launches", list(read_events(box.folder / "events.jsonl"))))
    notes = "; ".join([verdict or "ok", *harness.notes])
    row = _row((scenario.__doc__ or name).strip(), costs, _left(harness), gone_s, time.monotonic() - began_s, notes)
    if not (keep and verdict):
        box.down()
    return ScenarioResult(row, launches, not verdict)


def _left(harness: Harness) -> str:
    try:
        return str(harness.left())
    except click.ClickException:
        return "?"


def _row(title: str, costs: Outcome | None, left: str, gone_s: float, took_s: float, notes: str) -> str:
    usd = (
        f"{costs.launches:>8} {costs.ledger_usd:>10.5f} {costs.cloud_usd:>10.5f}"
        if costs
        else f"{'-':>8} {'-':>10} {'-':>10}"
    )
    return f"{title:<76} {usd}  {left:>4}  {gone_s:>8.0f} s  {took_s:>4.0f} s  {notes}"
