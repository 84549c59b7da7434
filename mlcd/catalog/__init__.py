"""Offers that can be rented: dated price files, queries, and refreshing them from a cloud."""

from mlcd.catalog.accelerators import Accelerator, known_accelerators
from mlcd.catalog.files import CLOUDS, load_offers, load_rows
from mlcd.catalog.query import SORT_ORDERS, select, unknown_gpu
from mlcd.catalog.retired import retired_types
from mlcd.catalog.row import CatalogRow

__all__ = [
    "CLOUDS",
    "SORT_ORDERS",
    "Accelerator",
    "CatalogRow",
    "known_accelerators",
    "load_offers",
    "load_rows",
    "retired_types",
    "select",
    "unknown_gpu",
]
