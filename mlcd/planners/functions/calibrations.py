"""What calibration probes have found out, kept for the runs to come: one JSON file for each platform and workload."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.planners.functions.nouns import Calibration
from mlcd.planners.functions.workload import Workload

_CODEC: TypeAdapter[Calibration] = TypeAdapter(Calibration)


def folder() -> Path:
    """Where they are kept."""
    return home() / "calibrations"


def save(folder: Path, platform: str, workload: Workload, measured: Calibration) -> Path:
    """Keep a calibration. Storages that only an earlier one knows stay known; the rest is as it was measured last."""
    try:
        before = load(folder, platform, workload)
    except UserError:  # what cannot be read is replaced
        before = None
    whole = measured if before is None else replace(measured, links={**before.links, **measured.links})
    path = _path(folder, platform, workload)
    folder.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")  # written whole or not at all, whoever else does the same
    beside.write_bytes(_CODEC.dump_json(whole, indent=2))
    os.replace(beside, path)
    return path


def load(folder: Path, platform: str, workload: Workload) -> Calibration | None:
    """What is known of this workload on this platform; None if nothing is."""
    path = _path(folder, platform, workload)
    try:
        return _CODEC.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = getattr(error, "strerror", None) or "not a calibration of this version"
        raise UserError(f"{path}: {why}; delete it, or calibrate again with --fresh") from error


def document(calibration: Calibration) -> dict[str, object]:
    """As plain data."""
    found: dict[str, object] = _CODEC.dump_python(calibration, mode="json")
    return found


def from_document(document: Mapping[str, Any]) -> Calibration:
    """Of plain data."""
    return _CODEC.validate_python(document)


def _path(folder: Path, platform: str, workload: Workload) -> Path:
    """Named after what decides how fast it computes and how much it exchanges."""
    name = f"{platform}-{workload.model}-{workload.data}-batch-{workload.batch}-{workload.model_mb:.4g}mb"
    return folder / f"{re.sub(r'[^a-z0-9.]+', '-', name.lower())}.json"
