"""The command `box`: a cloud in a box. See docs/howto/cloud-in-a-box.md."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from mlcd_box.bill import Item
from mlcd_box.boxes import Box, check_host
from mlcd_box.cloud.faults import EFFECTS, Rule
from mlcd_box.cloud.functions.runtime import runtime
from mlcd_box.cloud.market import read_trace
from mlcd_box.image import image

GONE = "terminated"


@click.group()
@click.option("--name", default="box", show_default=True, help="Name of the box; several can run side by side.")
@click.pass_context
def main(context: click.Context, name: str) -> None:
    """A cloud in a box: real SkyPilot and Lithops on an imitation of AWS, with faults and a bill."""
    context.obj = Box(name)


@main.command()
def build() -> None:
    """Build what all boxes share: the machines' image and the functions' Python."""
    check_host()
    image()
    runtime()


@main.command()
@click.pass_obj
def up(box: Box) -> None:
    """Start a box. The shared parts are built first, if necessary."""
    began_s = time.monotonic()
    box.up()
    click.echo(f"Box '{box.name}' is up after {time.monotonic() - began_s:.0f} s. Try: box exec sky check aws")


@main.command()
@click.pass_obj
def down(box: Box) -> None:
    """End a box, and every machine in it."""
    box.down()


@main.command(name="exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def execute(box: Box, command: tuple[str, ...]) -> None:
    """Run a command in the box: box exec mlcd train job.yaml --on skypilot:aws -y."""
    inside = box.command(command)
    os.execvp(inside[0], inside)


@main.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@click.pass_obj
def status(box: Box, output: str) -> None:
    """List the cloud's machines (but terminated ones), volumes and functions."""
    state = box.ask("state")
    state["machines"] = [machine for machine in state["machines"] if machine["state"] != GONE]
    if output == "json":
        click.echo(json.dumps(state, indent=1))
        return
    for machine in state["machines"]:
        click.echo(
            "  ".join(f"{machine[key]:<12}" for key in ("id", "state", "type", "zone", "market", "address", "name"))
        )
    for volume in state["volumes"]:
        machine = volume["machine"] or "no machine"
        click.echo(f"{volume['id']}  {volume['gb']} GB in {volume['zone']}, attached to {machine}")
    for function in state["functions"]:
        click.echo(f"function {function}")
    if state["calls"]:
        click.echo(f"{state['calls']} function calls run or wait")
    if not any(state.values()):
        click.echo("No machine, no volume, no function.")


@main.command()
@click.argument("effect", type=click.Choice([*EFFECTS, "nothing"]))
@click.option("--type", "instance_type", default="*", help="Instance types, as a pattern: m5.*")
@click.option("--zone", default="*", help="Zones, as a pattern: us-east-1?")
@click.option("--market", type=click.Choice(["spot", "on-demand", "*"]), default="*")
@click.option("--seconds", default=120.0, show_default=True, help="Duration of a slow boot.")
@click.option("--share", default=0.5, show_default=True, help="Share of requests that are throttled.")
@click.option("--most", default=10, show_default=True, help="Limit of function calls at once.")
@click.pass_obj
def fail(
    box: Box, effect: str, instance_type: str, zone: str, market: str, seconds: float, share: float, most: int
) -> None:
    """Inject a fault from now on; `box fail nothing` removes all faults."""
    rule = Rule(effect, instance_type, zone, market, seconds, share, most)
    box.faults.write([] if effect == "nothing" else [*box.faults.rules(), rule])


@main.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tick", default=10.0, show_default=True, help="Seconds that a tick of the trace takes in the box.")
@click.option("--zones", default="", help="Zones for its first columns, instead of their names: us-east-1a,us-east-1b.")
@click.option("--from", "first", default=0, show_default=True, help="The tick to begin with.")
@click.option("--notice", default=120.0, show_default=True, help="Seconds between a preemption notice and the end.")
@click.pass_obj
def market(box: Box, trace: Path, tick: float, zones: str, first: int, notice: float) -> None:
    """Replay a recorded spot market from now on: TRACE has a line for each tick and a column for each zone."""
    named = [zone for zone in zones.split(",") if zone]
    box.market.replay(read_trace(trace, tick, notice, named, first), time.time())


@main.command()
@click.argument("machine")
@click.option("--notice", default=120.0, show_default=True, help="Seconds between the notice and the end.")
@click.pass_obj
def interrupt(box: Box, machine: str, notice: float) -> None:
    """Preempt spot machines. MACHINE: an id, or the beginning of a cluster's name."""
    box.ask(f"interrupt?machine={machine}&notice_s={notice}", "POST")


@main.command()
@click.argument("machine")
@click.pass_obj
def lose(box: Box, machine: str) -> None:
    """Let a machine fail: it is off at once. MACHINE: an id, or the beginning of a cluster's name."""
    box.ask(f"lose?machine={machine}", "POST")


@main.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@click.pass_obj
def bill(box: Box, output: str) -> None:
    """Show what the cloud would charge, by MLCD's launches."""
    items = box.bill()
    if output == "json":
        click.echo(json.dumps([vars(item) for item in items], indent=1))
        return
    for launch, total in by_launch(items).items():
        click.echo(f"{launch or '(no launch of MLCD)':<44} ${total:.6f}")
        for item in items:
            if item.tags.get("mlcd", "") == launch:
                still_billed = "" if item.is_over else "  still billed"
                click.echo(f"    {item.what:<32} {item.seconds:>8.1f} s  ${item.usd:.6f}{still_billed}")


def by_launch(items: list[Item]) -> dict[str, float]:
    """Dollars by the value of the tag `mlcd`, which is the cluster of a launch."""
    totals: dict[str, Any] = defaultdict(float)
    for item in items:
        totals[item.tags.get("mlcd", "")] += item.usd
    return dict(totals)


@main.command()
@click.argument("scenarios", nargs=-1)
@click.option("--times", default=1, show_default=True, help="How often each is run.")
@click.option("--at-once", default=1, show_default=True, help="How many run side by side, with 4 GiB of memory each.")
@click.option("--keep", is_flag=True, help="Keep the boxes of failed scenarios.")
def test(scenarios: tuple[str, ...], times: int, at_once: int, keep: bool) -> None:
    """Run scenarios, each in its own box: all, or those named. Prints a table."""
    from mlcd_box.run_scenarios import run_scenarios

    raise SystemExit(run_scenarios(scenarios, times, at_once, keep))
