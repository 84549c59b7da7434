"""Runs side by side: their answers, limits and costs, what was probed, and what differs between their jobs."""

from mlcd.reports.comparison.compare import MOST_COMPARED, compare
from mlcd.reports.comparison.document import Comparison

__all__ = ["MOST_COMPARED", "Comparison", "compare"]
