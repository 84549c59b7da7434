"""List prices of network traffic out of a cloud's region, in dollars a GB, without any free allowance."""

from fnmatch import fnmatchcase
from functools import cache

from mlcd.catalog.files import packaged_table

PRICES = ("usd_per_gb", "price_date")


def egress_usd_per_gb(cloud: str, region: str) -> float:
    """Price of traffic out of a region to its most expensive destination, from `egress.csv` (`*`: any other region).

    A cloud without known prices counts as the most expensive of all.
    """
    prices = _highest_prices()
    return prices.get((cloud, region)) or prices.get((cloud, "*")) or max(prices.values())


@cache
def egress_between_usd_per_gb(cloud: str, origin: str, target: str) -> float:
    """Price of traffic between two regions of a cloud: the first line of `egress_between_regions.csv` that matches.

    Its cells hold patterns of region names, separated by spaces.
    """
    if origin == target:
        return 0.0
    for line in packaged_table("egress_between_regions.csv", "cloud", "from", "to", *PRICES):
        ends = (line.text("from"), origin), (line.text("to"), target)
        if line.text("cloud") == cloud and all(_is_one_of(region, patterns) for patterns, region in ends):
            return line.number("usd_per_gb", above_zero=True)
    return max(_highest_prices().values())  # a cloud without prices; the others have a last line for any two regions


def _is_one_of(region: str, patterns: str) -> bool:
    return any(fnmatchcase(region, each) for each in patterns.split())


@cache
def _highest_prices() -> dict[tuple[str, str], float]:
    """The highest price of traffic by cloud and region."""
    highest: dict[tuple[str, str], float] = {}
    for line in packaged_table("egress.csv", "cloud", "region", "to", *PRICES):
        key = line.text("cloud"), line.text("region")
        highest[key] = max(highest.get(key, 0.0), line.number("usd_per_gb", above_zero=True))
    return highest
