"""The table of `mlcd show` about the GPUs of a run's launches on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlcd.clouds.launches import launches_here
from mlcd.clouds.local.gpu_usage import usage_in

if TYPE_CHECKING:
    from mlcd.core.additions import Additions, Cell


def gpu_usage(run: str) -> Additions | None:
    """How busy the GPUs were, and how much memory they used; None if the run had none here."""
    recorded = [(folder.name, usage) for folder in launches_here().of_run(run) if (usage := usage_in(folder))]
    if not recorded:
        return None
    from mlcd.core.additions import Additions, Column, Table  # no other run waits for pydantic

    rows: list[list[Cell]] = [
        [launch, usage.kinds, usage.busy_percent, usage.peak_gib, usage.memory_gib] for launch, usage in recorded
    ]
    columns = [Column(label="Launch"), Column(label="GPUs"), Column(label="Busy on average", unit="%", align="right")]
    columns += [Column(label=label, unit="GiB", align="right") for label in ("Most memory used", "Of")]
    return Additions(tables=[Table(title="GPUs, from a launch's start to its end", columns=columns, rows=rows)])
