"""The page of a contest: how methods did against an oracle."""

from mlcd.reports.contest.data import Contest, Duel, Focus, Panel, Path, Place, Spread, Standing, Trace
from mlcd.reports.contest.page import page

__all__ = ["Contest", "Duel", "Focus", "Panel", "Path", "Place", "Spread", "Standing", "Trace", "page"]
