"""Plays scenarios, some of them side by side, and prints the table."""

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
from mlcd_box.image import image
from mlcd_box.scenarios import SCENARIOS
from mlcd_box.stage import Outcome, Stage, outcome
from mlcd_box.startup import Startup, startups, summary

HEAD = f"{'SCENARIO':<76} LAUNCHES   LEDGER $    CLOUD $  LEFT  GONE AFTER  TOOK    VERDICT"


@dataclass(frozen=True)
class Played:
    """How a scenario went. `launches`: how long each of its launches took to start."""

    row: str
    launches: tuple[Startup, ...]
    as_it_should: bool


def play_all(names: Sequence[str], times: int, at_once: int, keep: bool) -> int:
    """The exit code: 0 where every one went as it should. A row is printed as soon as its scenario is over."""
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise click.UsageError(f"no scenario '{unknown[0]}'; there are {', '.join(SCENARIOS)}")
    image()
    runtime()  # built before the boxes, which would all begin to
    click.echo(HEAD)
    played: list[Played] = []
    with ProcessPoolExecutor(at_once) as processes:
        plays = [processes.submit(play, name, n, keep) for name in names or SCENARIOS for n in range(times)]
        for done in as_completed(plays):
            played.append(done.result())
            click.echo(played[-1].row)
    click.echo(summary([startup for each in played for startup in each.launches]))
    return 0 if all(each.as_it_should for each in played) else 1


def play(name: str, number: int, keep: bool) -> Played:
    """One scenario, in a fresh box."""
    story, box = SCENARIOS[name], Box(f"test-{name}-{number}" if number else f"test-{name}")
    stage, began_s = Stage(box, box.folder.parent / f"{box.name}-stage"), time.monotonic()
    shutil.rmtree(stage.folder, ignore_errors=True)
    with suppress(click.ClickException):
        box.down()
    box.up()
    verdict, gone_s, found = "", 0.0, None
    try:
        story(stage)
        gone_s = stage.wait_until_nothing_is_left()
        found = outcome(stage)
        verdict = found.verdict()
    except Exception as error:  # whatever went wrong is the scenario's verdict, and the next one is played
        verdict = f"{type(error).__name__}: {error}".strip().splitlines()[0][:120]
        (box.folder / "failure.txt").write_text(traceback.format_exc())
    launches = tuple(startups(box.home / ".mlcd" / "launches", list(read_events(box.folder / "events.jsonl"))))
    notes = "; ".join([verdict or "ok", *stage.notes])
    row = _row((story.__doc__ or name).strip(), found, _left(stage), gone_s, time.monotonic() - began_s, notes)
    if not (keep and verdict):
        box.down()
    return Played(row, launches, not verdict)


def _left(stage: Stage) -> str:
    try:
        return str(stage.left())
    except click.ClickException:
        return "?"


def _row(story: str, found: Outcome | None, left: str, gone_s: float, took_s: float, notes: str) -> str:
    usd = (
        f"{found.launches:>8} {found.ledger_usd:>10.5f} {found.cloud_usd:>10.5f}"
        if found
        else f"{'-':>8} {'-':>10} {'-':>10}"
    )
    return f"{story:<76} {usd}  {left:>4}  {gone_s:>8.0f} s  {took_s:>4.0f} s  {notes}"
