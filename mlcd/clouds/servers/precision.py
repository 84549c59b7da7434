"""A model at the precision that a server is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mlcd.core.errors import UserError


def at_precision(model: Path, precision: str, folder: Path) -> Path:
    """The file to serve; one that has to be made is kept in the folder. UserError if it cannot be made.

    That is done by a process of its own: quantising takes more memory than serving, and a server is judged by the most
    that it ever held.
    """
    if precision == "fp32":
        return model
    command = [sys.executable, "-m", "mlcd.clouds.servers.quantise", str(model), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError((done.stderr.strip() or f"quantising ended with status {done.returncode}").splitlines()[-1])
    return Path(done.stdout.strip().splitlines()[-1])
