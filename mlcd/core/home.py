"""MLCD's state folder on this machine, and the ledger in it."""

from __future__ import annotations

import os
from pathlib import Path

from mlcd.core.errors import UserError
from mlcd.core.ledger import Ledger


def home() -> Path:
    """The state folder: $MLCD_HOME, or ~/.mlcd. Absolute, because jobs run in other folders."""
    folder = os.environ.get("MLCD_HOME") or "~/.mlcd"
    try:
        return Path(folder).expanduser().absolute()
    except RuntimeError:  # this user has no home folder here
        raise UserError(f"{folder}: there is no such home folder; choose one for MLCD's state with MLCD_HOME") from None


def open_ledger(folder: Path | None = None) -> Ledger:
    """The ledger in this folder; without one, the database of $MLCD_DATABASE_URL or the ledger in the state folder."""
    url = os.environ.get("MLCD_DATABASE_URL")
    if not url and (file := os.environ.get("MLCD_DATABASE_URL_FILE")):
        url = private_text(Path(file))
    if url and folder is None:
        return Ledger(url)
    if folder is None and not os.environ.get("MLCD_HOME"):  # a folder that the user names may be shared on purpose
        private_home()
    return Ledger((folder or home()) / "ledger.db")


def private_home() -> Path:
    """Create the state folder if it is missing, and let only this user enter it."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made private to you: {error.strerror}; set MLCD_HOME") from None
    return folder


def private_text(file: Path) -> str:
    """The text of a file with a secret; `UserError` if others can read it."""
    try:
        with file.open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise UserError(f"{file}: other users can read it, and a secret is in it: chmod 600 {file}")
            return opened.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}") from None
