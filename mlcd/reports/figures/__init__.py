"""The report's figures: pure functions of a story and a width in pixels, each returning one inline SVG."""

from mlcd.reports.figures.allocations import allocations, allocations_key
from mlcd.reports.figures.alone import alone
from mlcd.reports.figures.curve import key, tradeoff
from mlcd.reports.figures.frontier import frontier
from mlcd.reports.figures.loss import loss_curve, loss_key
from mlcd.reports.figures.marks import legend, listed, type_order
from mlcd.reports.figures.search_path import search_path
from mlcd.reports.figures.serving import best_so_far, kinds, latencies, latency_tradeoff
from mlcd.reports.figures.spend import Resource, spend
from mlcd.reports.figures.stages import stages, stages_key

__all__ = [
    "Resource",
    "allocations",
    "allocations_key",
    "alone",
    "best_so_far",
    "frontier",
    "key",
    "kinds",
    "latencies",
    "latency_tradeoff",
    "legend",
    "listed",
    "loss_curve",
    "loss_key",
    "search_path",
    "spend",
    "stages",
    "stages_key",
    "tradeoff",
    "type_order",
]
