"""The HTML page of a comparison of methods with an oracle."""

from mlcd_bench.page.data import Contest, Duel, Focus, Panel, Path, Place, Spread, Standing, Trace
from mlcd_bench.page.page import page

__all__ = ["Contest", "Duel", "Focus", "Panel", "Path", "Place", "Spread", "Standing", "Trace", "page"]
