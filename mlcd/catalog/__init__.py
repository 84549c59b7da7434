"""Offers that can be rented: dated price files, queries, and refreshing them from a cloud."""

from mlcd.catalog.egress import egress_between_usd_per_gb, egress_usd_per_gb
from mlcd.catalog.files import (
    CLOUDS,
    OTHER_CLOUDS,
    OfferRow,
    clouds_in,
    load_offers,
    load_rows,
    offered_rows,
    retired_types,
)
from mlcd.catalog.query import select, unknown_gpu
from mlcd.catalog.zones import regions_of

__all__ = [
    "CLOUDS", "OTHER_CLOUDS", "OfferRow", "clouds_in", "egress_between_usd_per_gb", "egress_usd_per_gb", "load_offers",
    "load_rows", "offered_rows", "regions_of", "retired_types", "select", "unknown_gpu",
]  # fmt: skip
