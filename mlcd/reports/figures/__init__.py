"""The report's figures: pure functions of a story and a width in pixels, each returning one inline SVG."""

from mlcd.reports.figures.alone import alone
from mlcd.reports.figures.curve import key, tradeoff
from mlcd.reports.figures.frontier import frontier
from mlcd.reports.figures.marks import legend, listed, type_order
from mlcd.reports.figures.search_path import search_path
from mlcd.reports.figures.serving import best_so_far, kinds, latencies, latency_tradeoff
from mlcd.reports.figures.spend import Resource, spend

__all__ = [
    "Resource",
    "alone",
    "best_so_far",
    "frontier",
    "key",
    "kinds",
    "latencies",
    "latency_tradeoff",
    "legend",
    "listed",
    "search_path",
    "spend",
    "tradeoff",
    "type_order",
]
