"""The report's figures: pure functions of a story and a width in pixels, each returning one inline SVG."""

from mlcd.reports.figures.frontier import frontier
from mlcd.reports.figures.marks import legend, type_order
from mlcd.reports.figures.search_path import search_path
from mlcd.reports.figures.spend import Resource, spend

__all__ = ["Resource", "frontier", "legend", "search_path", "spend", "type_order"]
