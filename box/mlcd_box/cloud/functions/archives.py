"""Zip files of code and layers: unpacked once, in a folder named after what is in them."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import zipfile
from pathlib import Path

from mlcd_box.cloud.functions.records import Archive
from mlcd_box.cloud.functions.rules import LARGEST_CODE, Refused


def unpack(packed: bytes, into: Path) -> Archive:
    """Unpack it below `into`, unless it is there already."""
    digest = hashlib.sha256(packed)
    folder = into / digest.hexdigest()[:24]
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            unpacked = sum(each.file_size for each in archive.infolist())
            check_unpacked(unpacked)
            if not folder.exists():
                beside = folder.with_suffix(f".{os.urandom(4).hex()}")
                archive.extractall(beside)
                _readable(beside)
                _put(beside, folder)
    except zipfile.BadZipFile:
        words = "Could not unzip uploaded file. Please check your file, then try to upload again."
        raise Refused("InvalidParameterValueException", words) from None
    return Archive(folder, base64.b64encode(digest.digest()).decode(), len(packed), unpacked)


def check_unpacked(total: int) -> None:
    """Refuse code that is too large together with its layers."""
    if total > LARGEST_CODE:
        words = f"Unzipped size must be smaller than {LARGEST_CODE} bytes"
        raise Refused("InvalidParameterValueException", words)


def _readable(folder: Path) -> None:
    """For everybody: functions do not run as root."""
    folder.chmod(0o755)
    for each in folder.rglob("*"):
        each.chmod(0o755 if each.is_dir() else each.stat().st_mode | 0o444)


def _put(beside: Path, folder: Path) -> None:
    """In one step; somebody else may have been faster."""
    try:
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside)
