"""The files of learned models: written atomically, with clear errors for unreadable ones."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mlcd.core.errors import UnknownName, UserError
from mlcd.memory.models.stored import FORMAT, StoredModel, complaint

_CODEC: TypeAdapter[StoredModel] = TypeAdapter(StoredModel)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that this version cannot read, and why."""

    name: str
    because: str


def save(folder: Path, stored: StoredModel) -> Path:
    """Store a model, replacing one of the same run and job. `ValueError` for NaN or infinity."""
    path, body = folder / f"{stored.name}.json", written(stored)
    folder.mkdir(parents=True, exist_ok=True)
    # in the same folder, so that the replacement is atomic; hidden, so that a crash leaves no partial model
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def load(folder: Path, name: str) -> StoredModel:
    """The model of that name; `UserError` if there is none, or if it cannot be read."""
    path = find(folder, name)
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise unusable(str(path), path.stem, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise unusable(str(path), path.stem, str(error)) from None


def all_models(folder: Path) -> tuple[dict[str, StoredModel], list[Unreadable]]:
    """All models by the name of their file, the newest first, and the unreadable files."""
    models, broken = {}, []
    for path in _paths(folder):
        try:
            models[path.stem] = load(folder, path.stem)
        except UserError as error:
            broken.append(Unreadable(path.stem, str(error)))
    return newest_first(models), broken


def forget(folder: Path, name: str) -> Path:
    """Delete the model of that name, readable or not; return its path."""
    path = find(folder, name)
    path.unlink(missing_ok=True)  # another process may have deleted it
    return path


def find(folder: Path, name: str) -> Path:
    """The file of the model of that name."""
    paths = {path.stem: path for path in _paths(folder)}
    if name not in paths:
        raise UnknownName("stored model", name, paths)
    return paths[name]


def _paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def newest_first(models: dict[str, StoredModel]) -> dict[str, StoredModel]:
    """The models sorted by date, the newest first."""
    names = sorted(models, key=lambda name: (models[name].saved_at, name), reverse=True)
    return {name: models[name] for name in names}


def written(stored: StoredModel) -> str:
    """A model as JSON; `ValueError` for NaN or infinity."""
    return json.dumps(_CODEC.dump_python(stored), indent=2, allow_nan=False, default=datetime.isoformat) + "\n"


def parsed(body: str) -> StoredModel:
    """Parse a model; `ValueError` describes a mistake."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON ({error})") from None
    written = document.get("format") if isinstance(document, dict) else None
    if written is None:
        raise ValueError("is not a stored model: it has no 'format'")
    if written != FORMAT:
        raise ValueError(f"is of format {written}, and this MLCD reads format {FORMAT}")
    try:
        return _CODEC.validate_python(document)
    except ValidationError as error:
        raise ValueError(f"is not a stored model: {complaint(error)}") from None


def unusable(where: str, name: str, why: str) -> UserError:
    """The error about an unreadable model, with advice."""
    return UserError(f"{where}: {why}; drop it with: mlcd models forget {name}")
