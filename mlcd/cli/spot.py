"""mlcd spot history: which machines were available, as seen by all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, open_ledger, output, print_json
from mlcd.core.units import counted, format_duration
from mlcd.memory.capacity import Capacity, all_observations, capacity

DAY = "%Y-%m-%d %H:%M"


@click.group()
def spot() -> None:
    """Which machines were available, as seen by all runs."""


@spot.command()
@click.option(
    "--type", "instance_type", default="*", metavar="PATTERN", help="Only these instance types, such as 'p3.*'."
)
@click.option("--zone", default="*", metavar="PATTERN", help="Only these zones or regions, such as 'us-east-1*'.")
@click.option("--on", "place", help="Only this place, such as skypilot:aws.")
@output
def history(instance_type: str, zone: str, place: str | None, output: str) -> None:
    """Which machines were available, by type, zone, nodes and market.

    Every launch of every run counts, probes too. Times are UTC.

    \b
    mlcd spot history --type 'p3.*'
    """
    found = [
        each
        for each in capacity(all_observations(open_ledger()))
        if fnmatchcase(each.instance_type, instance_type) and fnmatchcase(each.zone, zone)
        if place in (None, each.on)
    ]
    if output == "json":
        print_json({"capacity": [_document(each) for each in found]})
        return
    results, _ = consoles()
    if not found:
        results.print("No launches yet, or none that passes these filters.")
        return
    results.print(_table(found))
    tries = counted(sum(each.tries for each in found), "launch")
    results.print(f"{tries}. START-UP: median and 99th percentile. By hour of the day: -o json", style="dim")


def _document(seen: Capacity) -> dict[str, Any]:
    return {
        **asdict(seen),
        "share": seen.share,
        "last_got": seen.last_got.isoformat() if seen.last_got else None,
        "last_seen": seen.last_seen.isoformat(),
        "got_by_hour": [{"hour": hour, "tries": each[0], "got": each[1]} for hour, each in seen.got_by_hour.items()],
    }


def _table(found: Sequence[Capacity]) -> Table:
    table = plain_table(("ON", "INSTANCE", "WHERE"), ("NODES",))
    table.add_column("MARKET", no_wrap=True)
    for column in ("TRIES", "GOT", "TAKEN BACK", "MEAN LIFE", "START-UP"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("LAST GOT", no_wrap=True)
    table.add_column("LAST SEEN", no_wrap=True)
    for each in found:
        starts = (each.startup_median_s, each.startup_p99_s)
        table.add_row(
            escape(each.on),
            escape(each.instance_type),
            escape(each.zone),
            str(each.nodes),
            each.market,
            str(each.tries),
            f"{100 * each.share:.0f} %",
            str(each.taken_back),
            format_duration(3_600 * each.mean_life_h) if each.mean_life_h is not None else "-",
            " / ".join(format_duration(s) for s in starts if s is not None) or "-",
            each.last_got.strftime(DAY) if each.last_got else "never",
            each.last_seen.strftime(DAY),
        )
    return table
