"""A budget: dollars and a period. Months are calendar months in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum

from mlcd.core.units import format_usd


class Per(StrEnum):
    """The period of a budget: everything, or each month."""

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
        """The amount alone: $500.00 a month."""
        if self.usd is None:
            return "no limit"
        return format_usd(self.usd) + (" a month" if self.per is Per.MONTH else "")

    def since(self, now: datetime) -> str:
        """The first month whose entries count now, such as 2026-11; '' if all count."""
        return now.astimezone(UTC).strftime("%Y-%m") if self.per is Per.MONTH else ""

    def renewed_on(self, now: datetime) -> date | None:
        """When the budget starts anew; None: never."""
        if self.usd is None or self.per is not Per.MONTH:
            return None
        today = now.astimezone(UTC).date()
        return date(today.year + today.month // 12, today.month % 12 + 1, 1)


NO_LIMIT = Budget()
