"""Which machine a run belongs to that rents or measures: what tears its launches down is kept in one MLCD_HOME.

The machine is the folder: a number drawn once, kept there, and the host's name for people to read.
"""

from __future__ import annotations

import os
import platform
import secrets
from contextlib import suppress
from pathlib import Path

from sqlalchemy import select, update

from mlcd.assemble import home
from mlcd.database.schema import runs
from mlcd.ledger import Ledger

OWN_NODES = ("local", "functions")
"""Places that are the machine itself: what was measured or saved there is of no use on another one."""


def claim(run: str, ledger: Ledger) -> None:
    """Say that the launches of a run are kept here."""
    if ledger.database.dialect == "sqlite":  # the file is this machine's, and so is all that is in it
        return
    machine = f"{_number(home())} {platform.node()}"
    with ledger.database.write() as connection:
        connection.execute(update(runs).where(runs.c.name == run).values(machine=machine))


def elsewhere(run: str, ledger: Ledger, going_on: bool = True) -> str | None:
    """The host of the machine that a run has to wait for, if it is another one.

    What is open can be torn down, and paid for to the second, only there. `going_on`: whether more is to be launched;
    then nodes of that machine's own are waited for, too.
    """
    with ledger.database.read() as connection:
        told: str | None = connection.execute(select(runs.c.machine).where(runs.c.name == run)).scalar()
    number, _, host = (told or "").partition(" ")
    if told is None or number == _number(home()):
        return None
    account = ledger.account(run)
    own = going_on and account.job.on.partition(":")[0] in OWN_NODES
    return host if account.open or own else None


def _number(folder: Path) -> str:
    path, beside = folder / "machine", folder / f".machine.{os.getpid()}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        beside.write_text(secrets.token_hex(8), encoding="utf-8")
        with suppress(FileExistsError):  # another process was faster
            os.link(beside, path)
        beside.unlink()
    return path.read_text(encoding="utf-8")
