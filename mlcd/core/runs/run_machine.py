"""Which machine a run belongs to that rents or measures: what tears its launches down is kept in one MLCD_HOME.

The machine is the folder: a number drawn once, kept there, and the host's name for people to read. One person's
ledger is a file of this machine, and so is all that is in it: only runs of a team's database have a machine.
"""

from __future__ import annotations

import os
import platform
import secrets
from contextlib import suppress
from pathlib import Path

from sqlalchemy import select, update

from mlcd.core.database.schema import runs
from mlcd.core.errors import WrongState
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Status

ON_THE_DRIVER = ("local", "functions")
"""Places that are the machine itself: what was measured or saved there is of no use on another one."""
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE)


def claim_for_this_machine(run: str, ledger: Ledger) -> None:
    """Say that the launches of a run are kept here."""
    if ledger.database.dialect != "sqlite":
        _set(run, ledger, f"{_number(home())} {platform.node()}")


def release_machine(run: str, ledger: Ledger) -> None:
    """Say that the launches of a run are kept nowhere: it can go on anywhere."""
    _set(run, ledger, None)


def other_machine(run: str, ledger: Ledger, will_launch: bool = True) -> str | None:
    """The host of the machine that a run has to wait for, if it is another one.

    Open launches can be torn down, and billed to the second, only there. `will_launch`: whether more is to be launched;
    then nodes of that machine's own are waited for, too.
    """
    if ledger.database.dialect == "sqlite":
        return None
    with ledger.database.read() as connection:
        machine: str | None = connection.execute(select(runs.c.machine).where(runs.c.name == run)).scalar()
    number, _, host = (machine or "").partition(" ")
    if machine is None or number == _number(home()):
        return None
    account = ledger.account(run)
    goes_on = will_launch and account.status not in OVER
    return host if account.open or (goes_on and runs_on_the_driver(account.job)) else None


def check_on_this_machine(run: str, ledger: Ledger, will_launch: bool = True) -> None:
    """Refuse, in one line, what can be done on another machine alone."""
    if (host := other_machine(run, ledger, will_launch)) is not None:
        raise WrongState(
            f"run '{run}' is kept on {host}: do this there, or through its server (--server); "
            f"if that machine is gone for good: mlcd down {run} --machine-gone"
        )


def runs_on_the_driver(job: Job) -> bool:
    """Whether the job runs on the very machine that drives it, and on no other that is rented."""
    return job.on.partition(":")[0] in ON_THE_DRIVER


def _set(run: str, ledger: Ledger, machine: str | None) -> None:
    with ledger.database.write() as connection:
        connection.execute(update(runs).where(runs.c.name == run).values(machine=machine))


def _number(folder: Path) -> str:
    path, beside = folder / "machine", folder / f".machine.{os.getpid()}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        beside.write_text(secrets.token_hex(8), encoding="utf-8")
        with suppress(FileExistsError):  # another process was faster
            os.link(beside, path)
        beside.unlink()
    return path.read_text(encoding="utf-8")
