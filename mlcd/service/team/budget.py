"""A budget: how many dollars, and over which time. Months are those of the calendar, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum

from mlcd.core.units import format_usd


class Per(StrEnum):
    """Over which time a budget is: over everything, or over each month anew."""

    TOTAL = "total"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent. `usd`: None for no limit."""

    usd: float | None = None
    per: Per = Per.TOTAL

    def __str__(self) -> str:
        return "without limit" if self.usd is None else f"at most {self.amount}"

    @property
    def amount(self) -> str:
        """The sum alone: $500.00 a month."""
        if self.usd is None:
            return "no limit"
        return format_usd(self.usd) + (" a month" if self.per is Per.MONTH else "")

    def since(self, now: datetime) -> str:
        """The first month of which entries count now, as 2026-11; '' if all do."""
        return now.astimezone(UTC).strftime("%Y-%m") if self.per is Per.MONTH else ""

    def renewed_on(self, now: datetime) -> date | None:
        """When what was spent counts no more; None: never."""
        if self.usd is None or self.per is not Per.MONTH:
            return None
        today = now.astimezone(UTC).date()
        return date(today.year + today.month // 12, today.month % 12 + 1, 1)


NO_LIMIT = Budget()
