"""Store calibrations for later runs: one JSON file for each platform and workload."""

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
    """The folder of all stored calibrations."""
    return home() / "calibrations"


def save(folder: Path, platform: str, workload: Workload, measured: Calibration) -> Path:
    """Store a calibration. It replaces an earlier one, except for storages that only the earlier one has."""
    try:
        before = load(folder, platform, workload)
    except UserError:  # an unreadable file is replaced
        before = None
    whole = measured if before is None else replace(measured, links={**before.links, **measured.links})
    path = _path(folder, platform, workload)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")  # atomic, also if another process does the same
    temporary.write_bytes(_CODEC.dump_json(whole, indent=2))
    os.replace(temporary, path)
    return path


def load(folder: Path, platform: str, workload: Workload) -> Calibration | None:
    """The stored calibration of this workload on this platform; None if there is none."""
    path = _path(folder, platform, workload)
    try:
        return _CODEC.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = getattr(error, "strerror", None) or "not a calibration of this version"
        raise UserError(f"{path}: {why}; delete it, or calibrate again with --fresh") from error


def document(calibration: Calibration) -> dict[str, object]:
    """A calibration as plain data."""
    plain: dict[str, object] = _CODEC.dump_python(calibration, mode="json")
    return plain


def from_document(document: Mapping[str, Any]) -> Calibration:
    """The calibration of plain data."""
    return _CODEC.validate_python(document)


def _path(folder: Path, platform: str, workload: Workload) -> Path:
    """The file, named after what determines the speed of computing and the size of an exchange."""
    name = f"{platform}-{workload.model}-{workload.data}-batch-{workload.batch}-{workload.model_mb:.4g}mb"
    return folder / f"{re.sub(r'[^a-z0-9.]+', '-', name.lower())}.json"
