"""The code that functions on a cloud run: MLCD's and that of the job's folder, as one zip file in their bucket.

Its key is a hash of its content, so it is stored once. A function imports MLCD from the zip file itself; the job's
files are unpacked, since its models and data are found by path.
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

PACKAGES = ("mlcd/core", "mlcd/clouds/functions", "mlcd/planners/functions", "mlcd_bench/workloads")
"""Packages that a function uses; of their parent packages only the `__init__.py`."""
LARGEST_MB = 50
"""Most MB of Python files in a job's folder."""
NOT_CODE = ("__pycache__", "node_modules", "site-packages")
FILE_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all files in the zip file: equal code makes an equal zip file."""


def store_code(bucket: Any, folder: str) -> str:
    """Store the code unless it exists; return its key. `folder`: the job's, empty if it has no own code."""
    packed = pack(folder)
    key = f"mlcd/code/{hashlib.sha256(packed).hexdigest()[:24]}"
    if key not in bucket.list_keys(bucket.bucket, key):
        bucket.put_object(bucket.bucket, key, packed)
    return key


def pack(folder: str) -> bytes:
    """MLCD's packages, and the Python files of a job's folder below `job/`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(_mlcd_files().items()):
            _add(archive, name, file)
        if folder:
            for file in _job_files(Path(folder)):
                _add(archive, f"job/{file.relative_to(folder)}", file)
    return packed.getvalue()


def _mlcd_files() -> dict[str, Path]:
    """MLCD's files, by their names in the zip file."""
    files = {}
    for package in PACKAGES:
        top = find_spec(package.split("/")[0])
        if top is None or top.origin is None:
            continue  # installed without the examples
        above = Path(top.origin).parent.parent
        parents = [above / parent / "__init__.py" for parent in Path(package).parents if str(parent) != "."]
        for file in [*parents, *_python_files(above / package)]:
            files[str(file.relative_to(above))] = file
    return files


def _add(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    entry = zipfile.ZipInfo(name, FILE_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, file.read_bytes())


def _job_files(folder: Path) -> list[Path]:
    files = list(_python_files(folder))
    size_mb = sum(file.stat().st_size for file in files) / 1e6
    if size_mb > LARGEST_MB:
        raise UserError(
            f"{folder}: {size_mb:.0f} MB of Python files are too many to send to functions, at most {LARGEST_MB} MB; "
            "put the job file and its modules into their own folder"
        )
    return files


def _python_files(folder: Path) -> Iterator[Path]:
    """All Python files, sorted, without hidden folders and those of installed packages."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in NOT_CODE and not each.startswith("."))
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))
