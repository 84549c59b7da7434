"""Comparison of runs: decisions, limits, costs, probes, and the keys in which their jobs differ."""

from mlcd.reports.comparison.compare import MOST_COMPARED, compare
from mlcd.reports.comparison.document import Comparison

__all__ = ["MOST_COMPARED", "Comparison", "compare"]
