"""The code that functions on a cloud run: MLCD's and that of the job's folder, one zip file in their bucket.

Its key is made of its content, so it is stored once. A function imports MLCD from the zip file itself; the job's files
are unpacked, since its models and data are found by path.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mlcd.core.errors import UserError

SENT = ("mlcd/core", "mlcd/clouds/functions", "mlcd/planners/functions", "mlcd_bench/workloads")
"""Packages that a function uses; of those above them, the `__init__.py` alone."""
LARGEST_MB = 50
"""Of the code in a job's folder: more is not code."""
NOT_CODE = ("__pycache__", "node_modules", "site-packages")
WHEN = (1980, 1, 1, 0, 0, 0)
"""The date of all files: equal code makes an equal zip file."""


def store_code(bucket: Any, folder: str) -> str:
    """Store it unless it is there; return its key. `folder`: the job's, empty where it has no code of its own."""
    packed = pack(folder)
    key = f"mlcd/code/{hashlib.sha256(packed).hexdigest()[:24]}"
    if key not in bucket.list_keys(bucket.bucket, key):
        bucket.put_object(bucket.bucket, key, packed)
    return key


def pack(folder: str) -> bytes:
    """MLCD's packages, and the Python files of a job's folder below `job/`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(_of_mlcd().items()):
            _add(archive, name, file)
        if folder:
            for file in _of_job(Path(folder)):
                _add(archive, f"job/{file.relative_to(folder)}", file)
    return packed.getvalue()


def _of_mlcd() -> dict[str, Path]:
    """Its files, by their names in the zip file."""
    files = {}
    for package in SENT:
        top = find_spec(package.split("/")[0])
        if top is None or top.origin is None:
            continue  # an installation without examples
        above = Path(top.origin).parent.parent
        parents = [above / parent / "__init__.py" for parent in Path(package).parents if str(parent) != "."]
        for file in [*parents, *_python_files(above / package)]:
            files[str(file.relative_to(above))] = file
    return files


def _add(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    entry = zipfile.ZipInfo(name, WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, file.read_bytes())


def _of_job(folder: Path) -> list[Path]:
    files = list(_python_files(folder))
    size_mb = sum(file.stat().st_size for file in files) / 1e6
    if size_mb > LARGEST_MB:
        raise UserError(
            f"{folder}: {size_mb:.0f} MB of Python files are too many to send to functions, at most {LARGEST_MB} MB; "
            "put the job file and its modules into a folder of their own"
        )
    return files


def _python_files(folder: Path) -> Iterator[Path]:
    """Sorted; folders that hold no code of one's own, and hidden ones, are passed over."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in NOT_CODE and not each.startswith("."))
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))
