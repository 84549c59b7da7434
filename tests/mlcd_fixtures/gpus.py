"""A fake `nvidia-smi` that reports what a file says, as on a machine with GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pytest

NVIDIA_SMI = """#!/bin/sh
cat "$(dirname "$0")/gpus"
"""


def pretend_gpus(
    folder: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str], used_mib: int = 512, busy: str = "40"
) -> list[str]:
    """Put an nvidia-smi first in PATH that lists GPUs of these names, 80 GiB each; their UUIDs, unlike all others."""
    (folder / "smi").mkdir(exist_ok=True)
    uuids = [f"GPU-{uuid4()}" for _ in names]
    rows = [f"{uuid}, {name}, 81920, {used_mib}, {busy}\n" for uuid, name in zip(uuids, names, strict=True)]
    (folder / "smi" / "gpus").write_text("".join(rows))
    pretend_nvidia_smi(folder, monkeypatch, NVIDIA_SMI)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return uuids


def pretend_nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put this script first in PATH, as nvidia-smi."""
    (folder / "smi").mkdir(exist_ok=True)
    program = folder / "smi" / "nvidia-smi"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
