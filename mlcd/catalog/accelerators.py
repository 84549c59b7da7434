"""Published facts about accelerators that no cloud's API provides: `accelerators.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mlcd.catalog.files import packaged_text
from mlcd.core.csv_table import read_table
from mlcd.core.errors import CatalogError


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator: dense fp32 rate without tensor cores, its memory, and the source."""

    name: str
    tflops_fp32: float
    memory_gb: float
    source: str


@cache
def known_accelerators() -> dict[str, Accelerator]:
    """The packaged accelerators by name."""
    columns = ("name", "tflops_fp32", "memory_gb", "source")
    text, name = packaged_text("accelerators.csv"), "mlcd/catalog/accelerators.csv"
    lines = read_table(text, name=name, columns=columns, complain=CatalogError)
    return {
        line.text("name"): Accelerator(
            name=line.text("name"),
            tflops_fp32=line.number("tflops_fp32", above_zero=True),
            memory_gb=line.number("memory_gb", above_zero=True),
            source=line.text("source"),
        )
        for line in lines
    }
