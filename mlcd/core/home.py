"""Where MLCD keeps its state on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from mlcd.core.errors import UserError
from mlcd.core.ledger import Ledger


def home() -> Path:
    """Where MLCD keeps its state: $MLCD_HOME, or ~/.mlcd. Absolute: jobs run in folders of their own."""
    folder = os.environ.get("MLCD_HOME") or "~/.mlcd"
    try:
        return Path(folder).expanduser().absolute()
    except RuntimeError:  # a user whom this machine does not know
        raise UserError(f"{folder}: there is no such home folder; choose one for MLCD's state with MLCD_HOME") from None


def open_ledger(folder: Path | None = None) -> Ledger:
    """The ledger of this machine; the database that $MLCD_DATABASE_URL names, if no folder is given."""
    url = os.environ.get("MLCD_DATABASE_URL")
    if not url and (file := os.environ.get("MLCD_DATABASE_URL_FILE")):
        url = private_text(Path(file))
    if url and folder is None:
        return Ledger(url)
    if folder is None and not os.environ.get("MLCD_HOME"):  # one that is named may be shared on purpose
        private_home()
    return Ledger((folder or home()) / "ledger.db")


def private_home() -> Path:
    """The state folder, made if it is not there, which from now on only this user can enter."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise UserError(f"{folder}: the state folder must be ours alone: {error.strerror}; set MLCD_HOME") from None
    return folder


def private_text(file: Path) -> str:
    """What a file says that only its owner can read; `UserError` if others can, since a password is in it."""
    try:
        with file.open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise UserError(f"{file}: other users can read it, and a secret is in it: chmod 600 {file}")
            return opened.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}") from None
