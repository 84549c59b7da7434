"""Offers that can be rented: dated price files, queries, and refreshing them from a cloud."""

from mlcd.catalog.files import CLOUDS, OfferRow, egress_usd_per_gb, load_offers, load_rows, retired_types
from mlcd.catalog.query import select, unknown_gpu

__all__ = [
    "CLOUDS", "OfferRow", "egress_usd_per_gb", "load_offers", "load_rows", "retired_types", "select", "unknown_gpu",
]  # fmt: skip
