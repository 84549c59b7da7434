"""Unpacks zip files of code and layers, each once, in a folder that is named after its checksum."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import zipfile
from pathlib import Path

from mlcd_box.cloud.functions.records import Archive
from mlcd_box.cloud.functions.rules import MAX_CODE, ApiError


def unpack(packed: bytes, into: Path) -> Archive:
    """Unpack a zip file into a subfolder of `into`, unless that exists already."""
    digest = hashlib.sha256(packed)
    folder = into / digest.hexdigest()[:24]
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            unpacked = sum(each.file_size for each in archive.infolist())
            check_unpacked(unpacked)
            if not folder.exists():
                temporary = folder.with_suffix(f".{os.urandom(4).hex()}")
                archive.extractall(temporary)
                _make_readable(temporary)
                _move(temporary, folder)
    except zipfile.BadZipFile:
        words = "Could not unzip uploaded file. Please check your file, then try to upload again."
        raise ApiError("InvalidParameterValueException", words) from None
    return Archive(folder, base64.b64encode(digest.digest()).decode(), len(packed), unpacked)


def check_unpacked(total: int) -> None:
    """Refuse code that is too large together with its layers."""
    if total > MAX_CODE:
        words = f"Unzipped size must be smaller than {MAX_CODE} bytes"
        raise ApiError("InvalidParameterValueException", words)


def _make_readable(folder: Path) -> None:
    """Make a folder readable for all users: functions do not run as root."""
    folder.chmod(0o755)
    for each in folder.rglob("*"):
        each.chmod(0o755 if each.is_dir() else each.stat().st_mode | 0o444)


def _move(temporary: Path, folder: Path) -> None:
    """Move a folder atomically; delete it if another thread was faster."""
    try:
        temporary.rename(folder)
    except OSError:
        shutil.rmtree(temporary)
