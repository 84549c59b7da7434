"""Plays scenarios, one after the other, and prints the table."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress

import click

from mlcd_box.boxes import Box
from mlcd_box.events import read_events
from mlcd_box.scenarios import SCENARIOS
from mlcd_box.stage import Outcome, Stage, outcome
from mlcd_box.startup import Startup, startups, summary

HEAD = f"{'SCENARIO':<76} LAUNCHES   LEDGER $    CLOUD $  LEFT  GONE AFTER  TOOK    VERDICT"


def play_all(names: Sequence[str], times: int, keep: bool) -> int:
    """The exit code: 0 where every one went as it should."""
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise click.UsageError(f"no scenario '{unknown[0]}'; there are {', '.join(SCENARIOS)}")
    click.echo(HEAD)
    measured: list[Startup] = []
    codes = [play(name, keep, measured) for name in names or SCENARIOS for _ in range(times)]
    click.echo(summary(measured))
    return max(codes, default=0)


def play(name: str, keep: bool, measured: list[Startup]) -> int:
    """One scenario, in a fresh box. `measured`: gets how long its launches took to start."""
    story, box = SCENARIOS[name], Box(f"test-{name}")
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
    measured += startups(box.home / ".mlcd" / "launches", list(read_events(box.folder / "events.jsonl")))
    told = "; ".join([verdict or "ok", *stage.notes])
    click.echo(_row((story.__doc__ or name).strip(), found, _left(stage), gone_s, time.monotonic() - began_s, told))
    if not (keep and verdict):
        box.down()
    return 1 if verdict else 0


def _left(stage: Stage) -> str:
    try:
        return str(stage.left())
    except click.ClickException:
        return "?"


def _row(story: str, found: Outcome | None, left: str, gone_s: float, took_s: float, told: str) -> str:
    usd = (
        f"{found.launches:>8} {found.ledger_usd:>10.5f} {found.cloud_usd:>10.5f}"
        if found
        else f"{'-':>8} {'-':>10} {'-':>10}"
    )
    return f"{story:<76} {usd}  {left:>4}  {gone_s:>8.0f} s  {took_s:>4.0f} s  {told}"
