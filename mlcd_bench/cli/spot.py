"""mlcd bench spot: policies for spot machines, replayed on recorded markets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output
from mlcd_bench.cli.names import split_names

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd_bench.spot import Market, Run, Setting

RULES = (
    "OVER: mean cost over the offline optimum of the same window, which knows the whole trace. SPREAD: its standard "
    "deviation. MISSED: missed deadlines. SAVED: share of the cost of on demand only. The guard wraps every policy. "
    "WINS, LOSSES: windows in which cost-to-go costs less or more by over 0.5 %; BEHIND: its mean over the other's, "
    "minus one. Nothing is random: there are no seeds."
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--policy", default="all", show_default=True, help="cost-to-go, pace, greedy ...; with commas.")
@click.option("--ratio", default="1.05,1.1,1.25,1.5,2", show_default=True, help="Deadline over work, with commas.")
@click.option("--changeover", default="3,12,30", show_default=True, help="Minutes until a launch works, with commas.")
@click.option(
    "--window-h", default=48.0, show_default=True, type=click.FloatRange(0, min_open=True), help="The deadline, hours."
)
@click.option(
    "--stride-h",
    default=12.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Hours from one window's start to the next.",
)
@click.option(
    "--history-h",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Hours before a window that are known.",
)
@click.option("--set", "sets", default="all", show_default=True, help="Files of the folder, with commas.")
@click.option(
    "--need",
    default="both",
    show_default=True,
    type=click.Choice(("any", "all", "both")),
    help="Traces of several machines: any of them is enough, all are needed, or both markets.",
)
@click.option("--zones", default="together", show_default=True, help="together, each (alone), or names with commas.")
@click.option("--processes", default=None, type=click.IntRange(1), help="Processes; all cores by default.")
@output
def spot(
    folder: Path,
    policy: str,
    ratio: str,
    changeover: str,
    window_h: float,
    stride_h: float,
    history_h: float,
    sets: str,
    need: str,
    zones: str,
    processes: int | None,
    output: str,
) -> None:
    """Compare policies for spot machines on recorded markets.

    DIR holds traces of availability by zone and tick, traces.csv and prices.csv.

    \b
    mlcd bench spot DIR --policy cost-to-go,uniform-progress
    """
    from mlcd.core.errors import UserError
    from mlcd_bench.spot import POLICIES, Setting, read_markets

    names = split_names("policy", policy, POLICIES)
    setting = Setting(window_h, stride_h, history_h, _numbers("ratio", ratio), _numbers("changeover", changeover))
    if min(setting.ratios) < 1:
        raise UserError(f"--ratio {ratio}: each must be 1 or more, or the work does not fit before the deadline")
    all_markets, left_out = read_markets(folder)
    wanted = split_names("set", sets, list(dict.fromkeys(market.set for market in all_markets)))
    needs = ("any", "all") if need == "both" else (need,)
    selected = _select_zones([each for each in all_markets if each.set in wanted and each.need in needs], zones)
    markets = [market for market in selected if _is_played(market, setting, left_out)]
    for why in dict.fromkeys(left_out):
        click.echo(f"left out: {why}", err=True)
    if not markets:
        raise UserError(f"{folder}: nothing to play: no trace is selected, or none is long enough")
    played = _play(markets, names, setting, processes)
    if output == "json":
        _print(played)
    else:
        _show(consoles()[0], list(played))


def _select_zones(markets: Sequence[Market], zones: str) -> list[Market]:
    """The markets with all zones, with each zone alone, or with the named zones that they have."""
    if zones == "together":
        return list(markets)
    if zones == "each":
        return [market.only([zone]) for market in markets for zone in market.zones]
    named = split_names("zone", zones, list(dict.fromkeys(zone for market in markets for zone in market.zones)))
    kept = [(market, [zone for zone in named if zone in market.zones]) for market in markets]
    return [market.only(there) for market, there in kept if there]


def _is_played(market: Market, setting: Setting, left_out: list[str]) -> bool:
    """Whether there is anything to play. What cannot be played is added to `left_out`."""
    from mlcd_bench.spot import has_time, starts

    if not starts(market, setting):
        needed = f"{setting.history_h:g} h of history and a window of {setting.window_h:g} h"
        hours = len(market.up) * market.tick_h
        left_out.append(f"{market.set}, {market.need}: {hours:.0f} h are too short for {needed}")
        return False
    jobs = list(product(setting.ratios, setting.changeovers_min))
    late = [(ratio, minutes) for ratio, minutes in jobs if not has_time(market, setting, ratio, minutes)]
    for ratio, minutes in late:
        left_out.append(f"{market.set}: a ratio of {ratio:g} leaves no time for a changeover of {minutes:g} min")
    return len(late) < len(jobs)


def _play(markets: Sequence[Market], policies: Sequence[str], setting: Setting, processes: int | None) -> Iterator[Run]:
    """All runs, with a progress bar."""
    from rich.progress import track

    from mlcd_bench.spot import tasks, windows

    progress, count = consoles()[1], len(tasks(markets, setting))
    if not progress.is_terminal:
        progress.print(f"{count} windows of {len(policies)} x {len(setting.ratios)} jobs", highlight=False)
    played = windows(markets, policies, setting, processes or os.cpu_count() or 1)
    live = track(played, "playing", count, console=progress, transient=True, disable=not progress.is_terminal)
    return (run for runs in live for run in runs)


def _numbers(option: str, written: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in written.split(","))
    except ValueError:
        raise click.BadParameter(f"'{written}': expected numbers, such as 3,12", param_hint=f"--{option}") from None
    if any(not 0 <= number < 1e6 for number in numbers):
        raise click.BadParameter(f"'{written}': each must be 0 or more", param_hint=f"--{option}")
    return numbers


def _print(runs: Iterable[Run]) -> None:
    """JSON with a run on each line, written as they come: there may be thousands."""
    between = '{"runs": [\n'
    for run in runs:
        click.echo(between + json.dumps(run.document(), allow_nan=False), nl=False)
        between = ",\n"
    click.echo("\n]}")


def _show(console: Console, runs: Sequence[Run]) -> None:
    from mlcd_bench.spot.summary import cells, duels

    numbers = ("RATIO", "RUNS", "OVER", "SPREAD", "WORST", "MISSED", "SAVED")
    table = plain_table(("SET", "NEED", "ZONES", "POLICY"), numbers)
    for cell in cells(runs):
        table.add_row(
            cell.set,
            cell.need,
            cell.zones[0] if len(cell.zones) == 1 else str(len(cell.zones)),
            cell.policy,
            f"{cell.ratio:g}",
            str(cell.runs),
            f"{cell.mean:.3f}",
            f"{cell.spread:.3f}",
            f"{cell.worst:.2f}",
            str(cell.missed),
            f"{cell.saved:.0%}",
        )
    console.print(table)
    if rows := list(duels(runs)):
        console.print()
        table = plain_table(("SET", "NEED", "AGAINST"), ("RATIO", "WINS", "LOSSES", "BEHIND"))
        for duel in rows:
            row = (f"{duel.ratio:g}", str(duel.wins), str(duel.losses), f"{duel.behind:+.1%}")
            table.add_row(duel.set, duel.need, duel.other, *row)
        console.print(table)
    console.print(RULES, style="dim", highlight=False)
