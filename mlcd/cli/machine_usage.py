"""The table of `mlcd show` about CPU, memory and GPUs of a run's launches, if they were measured on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcd.clouds.launches import launches_here
from mlcd.clouds.usage import Usage, usage_in

if TYPE_CHECKING:
    from mlcd.core.additions import Additions, Cell


def machine_usage(run: str) -> Additions | None:
    """How busy machines were, and how much memory they used; None if nothing was measured here."""
    recorded = [(folder.name, usage) for folder in launches_here().of_run(run) if (usage := usage_in(folder))]
    rows = [(label, usage) for label, usage in recorded if usage.machines]
    if not rows:
        return None
    from mlcd.core.additions import Additions, Column, Table  # imported only if needed: pydantic is slow to import

    columns = [Column(label="Launch"), Column(label="CPU busy", unit="%", align="right")]
    columns += [Column(label=label, unit="GiB", align="right") for label in ("Most memory", "Of")]
    has_gpus = any(usage.gpus for _, usage in rows)
    if has_gpus:
        columns += [Column(label="GPUs"), Column(label="GPU busy", unit="%", align="right")]
        columns += [Column(label=label, unit="GiB", align="right") for label in ("Most GPU memory", "Of")]
    cells = [[label, *_of_machines(usage), *(_of_gpus(usage) if has_gpus else [])] for label, usage in rows]
    return Additions(tables=[Table(title="Machines, from a launch's start to its end", columns=columns, rows=cells)])


def _of_machines(usage: Usage) -> list[Cell]:
    busy, peak = usage.cpu_share, usage.memory_peak
    shown: list[Cell] = [None if busy is None else 100 * busy]
    return shown + ([None, None] if peak is None else [peak.used_gib, peak.of_gib])


def _of_gpus(usage: Usage) -> list[Cell]:
    of = max((gpu.memory_gib for gpu in usage.gpus), default=None)
    return [usage.gpu_kinds or None, usage.gpu_percent, usage.gpu_peak_gib, of]
