"""What a GB out of a cloud's region costs, in dollars: list prices; no free gigabytes of a month are taken off."""

from fnmatch import fnmatchcase
from functools import cache

from mlcd.catalog.files import packaged_table

PRICES = ("usd_per_gb", "price_date")


def egress_usd_per_gb(cloud: str, region: str) -> float:
    """Of what leaves a region, to wherever that is dearest: `egress.csv`; `*` is any other region.

    A cloud whose prices are not known counts as the dearest of all.
    """
    prices = _dearest()
    return prices.get((cloud, region)) or prices.get((cloud, "*")) or max(prices.values())


@cache
def egress_between_usd_per_gb(cloud: str, origin: str, target: str) -> float:
    """From one region to another of the same cloud: the first line of `egress_between_regions.csv` that is about both.

    A cell of it has patterns of regions' names, with blanks between them.
    """
    if origin == target:
        return 0.0
    for line in packaged_table("egress_between_regions.csv", "cloud", "from", "to", *PRICES):
        ends = (line.text("from"), origin), (line.text("to"), target)
        if line.text("cloud") == cloud and all(_is_one_of(region, patterns) for patterns, region in ends):
            return line.number("usd_per_gb", above_zero=True)
    return max(_dearest().values())  # every cloud of the package has a last line for any two regions


def _is_one_of(region: str, patterns: str) -> bool:
    return any(fnmatchcase(region, each) for each in patterns.split())


@cache
def _dearest() -> dict[tuple[str, str], float]:
    """By cloud and region."""
    dearest: dict[tuple[str, str], float] = {}
    for line in packaged_table("egress.csv", "cloud", "region", "to", *PRICES):
        key = line.text("cloud"), line.text("region")
        dearest[key] = max(dearest.get(key, 0.0), line.number("usd_per_gb", above_zero=True))
    return dearest
