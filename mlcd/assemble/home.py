"""Where MLCD keeps its state on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from mlcd.backends.launches import Launches
from mlcd.errors import UserError
from mlcd.ledger import Ledger


def home() -> Path:
    """Where MLCD keeps its state: $MLCD_HOME, or ~/.mlcd. Absolute: jobs run in folders of their own."""
    told = os.environ.get("MLCD_HOME") or "~/.mlcd"
    try:
        return Path(told).expanduser().absolute()
    except RuntimeError:  # a user whom this machine does not know
        raise UserError(f"{told}: there is no such home folder; choose one for MLCD's state with MLCD_HOME") from None


def open_ledger(folder: Path | None = None) -> Ledger:
    """The ledger of this machine; where $MLCD_DATABASE_URL names a database, and no folder is given, that one."""
    url = os.environ.get("MLCD_DATABASE_URL")
    if url and folder is None:
        return Ledger(url)
    return Ledger((folder or home()) / "ledger.db")


def launches() -> Launches:
    """What is kept of launches on real machines."""
    return Launches(home() / "launches")
