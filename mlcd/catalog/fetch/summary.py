"""The result of a refresh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlcd.catalog.row import CatalogRow


@dataclass(frozen=True)
class RefreshSummary:
    """Which rows have a new price, and which keep their old price and date."""

    path: Path
    region: str
    repriced: tuple[CatalogRow, ...]
    kept: tuple[CatalogRow, ...]

    def __str__(self) -> str:
        """A line for new prices, and one for kept ones."""
        total = len(self.repriced) + len(self.kept)
        lines = [f"{len(self.repriced)} of {total} types have a price of today in {self.region}: {self.path}"]
        if self.kept:
            dated = ", ".join(f"{row.instance_type} ({row.price_date})" for row in self.kept)
            lines.append(f"no price was found for {len(self.kept)}, which keep their old one: {dated}")
        return "\n".join(lines)
