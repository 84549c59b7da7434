"""Compare the ledger with the cloud's bill, launch by launch."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlcd.core.errors import UserError
from mlcd.core.ledger import Line, Settled, Voided
from mlcd.core.units import format_usd

TOLERATED_SHARE, TOLERATED_USD = 0.02, 1.0
"""A larger difference than either of these is pointed out."""
COSTS = ("line_item_unblended_cost", "lineItem/UnblendedCost")
"""AWS's column of dollars: in a data export, and in the older Cost and Usage Report."""
TAGS = ("resource_tags_user_mlcd", "resourceTags/user:mlcd")
"""AWS's column of the tag `mlcd`, likewise."""
ALL_TAGS = "resource_tags"
"""Of a data export (CUR 2.0): every tag in one column, as JSON."""


@dataclass(frozen=True)
class Reconciled:
    """The cost of a launch by the ledger and by the cloud's bill; `cloud_usd` is None if the bill does not have it."""

    label: str
    configuration: str
    ledger_usd: float
    cloud_usd: float | None

    @property
    def differs(self) -> bool:
        """Whether the difference is to be pointed out."""
        if self.cloud_usd is None:
            return self.ledger_usd > 0
        off_usd = abs(self.ledger_usd - self.cloud_usd)
        return off_usd > TOLERATED_USD or off_usd > TOLERATED_SHARE * self.cloud_usd

    @property
    def words(self) -> str:
        """'the ledger has $0.02 more (4.1 %)'."""
        if self.cloud_usd is None:
            return "not in the bill" if self.ledger_usd > 0 else ""
        if not self.differs:
            return ""
        off_usd = self.ledger_usd - self.cloud_usd
        share = f" ({100 * abs(off_usd) / self.cloud_usd:.1f} %)" if self.cloud_usd > 0 else ""
        return f"the ledger has {format_usd(abs(off_usd))} {'more' if off_usd > 0 else 'less'}{share}"


def reconcile(lines: Sequence[Line], billed: Mapping[str, float]) -> list[Reconciled]:
    """Every launch of a run. `billed`: the cloud's dollars by label."""
    rows = []
    for entry in (line.entry for line in lines):
        if isinstance(entry, Settled | Voided):
            usd = entry.measurement.usd if isinstance(entry, Settled) else 0.0
            label = entry.launch.label
            rows.append(Reconciled(label, str(entry.launch.configuration), usd, billed.get(label)))
    return rows


def read_aws_export(path: Path) -> dict[str, float]:
    """Dollars by the tag `mlcd`, from a file of AWS Cost Explorer's exports."""
    usd: dict[str, float] = defaultdict(float)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            columns = rows.fieldnames or ()
            cost = next((column for column in COSTS if column in columns), None)
            tag = next((column for column in (*TAGS, ALL_TAGS) if column in columns), None)
            if cost is None or tag is None:
                raise UserError(f"{path}: not an export of AWS's costs with tags: it needs {COSTS[0]} and {TAGS[0]}")
            for row in rows:
                if name := _tag(row[tag], tag):
                    usd[name] += float(row[cost] or 0.0)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as a bill: {error}") from error
    return dict(usd)


def _tag(cell: str, column: str) -> str:
    if column != ALL_TAGS:
        return cell
    tags = json.loads(cell or "{}")
    return str(tags.get("user_mlcd", "")) if isinstance(tags, dict) else ""


def total(rows: Sequence[Reconciled]) -> Reconciled:
    """All launches together."""
    ledger_usd = sum(row.ledger_usd for row in rows)
    return Reconciled("total", "", ledger_usd, sum(row.cloud_usd or 0.0 for row in rows))
