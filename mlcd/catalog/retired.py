"""Retired instance types: `retired.csv`. Their rows stay, for simulations and for the papers' figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mlcd.catalog.files import packaged_text
from mlcd.core.csv_table import read_table
from mlcd.core.errors import CatalogError


@cache
def retired_types() -> Mapping[tuple[str, str], str]:
    """By cloud and instance type, the year and month since which it cannot be rented any more."""
    text, name = packaged_text("retired.csv"), "mlcd/catalog/retired.csv"
    columns = ("cloud", "instance_type", "since", "source")
    lines = read_table(text, name=name, columns=columns, complain=CatalogError)
    since = {}
    for line in lines:
        line.text("source")  # each needs a source
        since[line.text("cloud"), line.text("instance_type")] = line.text("since")
    return since
