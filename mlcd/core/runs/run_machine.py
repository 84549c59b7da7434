"""Which machine a live run of a team belongs to: only there can its launches be torn down.

What is needed to tear launches down is in MLCD_HOME. So a machine is identified by a random number in that folder, with
the host's name for messages. Runs in a SQLite ledger always belong to this machine and record none.
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
"""Places that use the machine itself: measurements and checkpoints there are useless on another machine."""
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE)


def claim_for_this_machine(run: str, ledger: Ledger) -> None:
    """Record that the run's launches belong to this machine."""
    if ledger.database.dialect != "sqlite":
        _set(run, ledger, f"{_number(home())} {platform.node()}")


def release_machine(run: str, ledger: Ledger) -> None:
    """Record that the run belongs to no machine: it can continue on any."""
    _set(run, ledger, None)


def other_machine(run: str, ledger: Ledger, will_launch: bool = True) -> str | None:
    """The host of the other machine that has to continue this run; None if it can continue here.

    Open launches can be torn down, and billed to the second, only there. `will_launch`: the run will launch more, so a
    run on that machine's own nodes belongs there too.
    """
    if ledger.database.dialect == "sqlite":
        return None
    with ledger.database.read() as connection:
        machine: str | None = connection.execute(select(runs.c.machine).where(runs.c.name == run)).scalar()
    number, _, host = (machine or "").partition(" ")
    if machine is None or number == _number(home()):
        return None
    account = ledger.account(run)
    continues = will_launch and account.status not in OVER
    return host if account.open or (continues and runs_on_the_driver(account.job)) else None


def check_on_this_machine(run: str, ledger: Ledger, will_launch: bool = True) -> None:
    """Raise, in one line, if only another machine can continue the run."""
    if (host := other_machine(run, ledger, will_launch)) is not None:
        raise WrongState(
            f"run '{run}' belongs to {host}: do this there, or through its server (--server); "
            f"if that machine is gone for good: mlcd down {run} --machine-gone"
        )


def runs_on_the_driver(job: Job) -> bool:
    """Whether the job runs on the machine that drives it, instead of on rented ones."""
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
