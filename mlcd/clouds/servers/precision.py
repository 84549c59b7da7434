"""A model at the requested precision."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mlcd.core.errors import UserError


def at_precision(model: Path, precision: str, folder: Path) -> Path:
    """The file to serve; a quantised one is cached in the folder. UserError if the model cannot be quantised.

    In a separate process: quantising takes more memory than serving, and would count as the server's peak memory.
    """
    if precision == "fp32":
        return model
    command = [sys.executable, "-m", "mlcd.clouds.servers.quantise", str(model), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError((done.stderr.strip() or f"quantising ended with status {done.returncode}").splitlines()[-1])
    return Path(done.stdout.strip().splitlines()[-1])
