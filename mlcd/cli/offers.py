"""mlcd offers, mlcd catalog refresh: instance types and their prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from mlcd.catalog import OfferRow, offered_rows, select
from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, parsed_by, patterns_or_none, print_answer, print_json
from mlcd.cli.server import chosen_server
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.units import counted, parse_usd

MOST_OFFERS = 5_000
"""Most offers in one request; the catalog has some hundreds."""


@click.command()
@click.option("--gpu", help="A GPU, such as A100, or A100:8 for eight in a node.")
@click.option("--max-price", metavar="USD", callback=parsed_by(parse_usd), help="At most this many dollars an hour.")
@click.option("--min-memory", type=float, help="At least this many GB of main memory.")
@click.option("--min-vcpus", type=float, help="At least this many vCPUs.")
@click.option("--cloud", help="Only this cloud: aws, gcp, azure or another.")
@click.option(
    "--instances",
    multiple=True,
    metavar="PATTERN",
    callback=parsed_by(patterns_or_none),
    help="Instance types, such as 'c5.*,p3.*'; repeatable.",
)
@click.option("--spot", is_flag=True, help="Show spot prices, and only types that have one.")
@click.option("--sort", default="price", show_default=True, help="Sort by price, memory, gpus or tflops-per-dollar.")
@output
def offers(min_memory: float | None, output: str, **filters: Any) -> None:
    """List instance types and prices of the catalog.

    \b
    mlcd offers --gpu A100 --max-price 5
    """
    rows = select(_rows(), min_memory_gb=min_memory, **filters)
    if output == "json":
        print_json({"offers": [asdict(row) for row in rows]})
        return
    results, _ = consoles()
    if not rows:
        results.print("No offer passes these filters.")
        return
    results.print(_table(rows, by_zone=bool(filters["spot"])))
    count = counted(len(rows), "offer")
    results.print(f"{count}; list prices as of the date shown. Their sources: mlcd offers -o json", style="dim")


def _table(rows: Sequence[OfferRow], *, by_zone: bool) -> Table:
    """`by_zone`: a row for each zone whose spot price is known, the cheapest first."""
    table = plain_table(("INFRA", "INSTANCE"), ("vCPUS", "MEM(GB)"))
    table.add_column("GPUS", no_wrap=True)
    for column in ("NET(Gbps)", "$/H", "SPOT $/H"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("PRICE OF", no_wrap=True)
    places = [(row, zone) for row in rows for zone in (_zones(row) if by_zone else ()) or ("",)]
    for row, zone in places:
        spot = row.price(spot=True, zone=zone)
        table.add_row(
            "/".join(part for part in (row.cloud, row.region, zone) if part),
            escape(row.instance_type),
            f"{row.vcpus:g}",
            f"{row.memory_gb:g}",
            f"{row.accelerator}:{row.accelerators}" if row.accelerators else "-",
            f"{row.network_gbps:g}",
            f"{row.usd_per_hour:,.3f}",
            f"{spot:,.3f}" if spot is not None else "-",
            row.price_date,
        )
    return table


def _zones(row: OfferRow) -> list[str]:
    return sorted(row.spot_usd_by_zone, key=lambda zone: (row.spot_usd_by_zone[zone], zone))


def _rows() -> list[OfferRow]:
    """The whole catalog, of this machine or of the chosen server."""
    if (server := chosen_server()) is None:
        return offered_rows(home() / "catalog")
    answer = server.get("/offers", limit=MOST_OFFERS)
    with server.reading():
        return [OfferRow(**each) for each in answer["offers"]]


@click.group()
def catalog() -> None:
    """Update the price lists."""


@catalog.command()
@click.argument("source", metavar="SOURCE", type=click.Choice(["aws", "skypilot"]))
@click.option("--cloud", "clouds", multiple=True, help="With skypilot: only this cloud, such as lambda; repeatable.")
@click.option(
    "--region",
    "regions",
    multiple=True,
    help="Only this region; repeatable. Default: us-east-1 of aws, all of skypilot.",
)
@output
def refresh(source: str, clouds: tuple[str, ...], regions: tuple[str, ...], output: str) -> None:
    """Fetch current prices, and spot prices by zone.

    SOURCE is aws, which needs credentials; or skypilot, the catalog that SkyPilot keeps on this machine, with prices
    of aws, gcp, azure, lambda, runpod, nebius and others. The catalog inside the package stays unchanged.

    \b
    mlcd catalog refresh aws
    mlcd catalog refresh skypilot --cloud lambda
    """
    directory = home() / "catalog"
    if source == "skypilot":
        from mlcd.catalog.skypilot import refresh_from_skypilot

        made = refresh_from_skypilot(directory, clouds=clouds, regions=regions)
        document = {"clouds": [{**asdict(each), "path": str(each.path)} for each in made]}
        print_answer(output, "\n".join(map(str, made)), document)
        return
    if clouds:
        raise UserError("--cloud works only with skypilot: mlcd catalog refresh skypilot --cloud " + clouds[0])
    from mlcd.catalog.aws import refresh as refresh_aws

    summary = refresh_aws(directory, regions=regions or ("us-east-1",))
    print_answer(output, str(summary), {"cloud": source, **asdict(summary), "path": str(summary.path)})
