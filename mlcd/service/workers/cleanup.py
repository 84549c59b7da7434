"""Cleanup: deletes old logs and uploaded models, and settles launches on machines that are lost for good."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select

from mlcd.clouds.control import Cleaned
from mlcd.clouds.launches import Launches
from mlcd.core.clock import WallClock
from mlcd.core.database.files import LogPieces, UploadedModels
from mlcd.core.database.schema import entries, runs
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Ended, Entry, Ledger, Line, Reserved, Settled, Status, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.run_machine import other_machine, release_machine, runs_on_the_driver
from mlcd.core.units import format_usd
from mlcd.service.workers.submissions import waits

UNFINISHED = (Status.SEARCHING, Status.RUNNING, Status.STOPPED)  # such a run needs its model, however old


def drop_old(ledger: Ledger, home: Path, before: datetime) -> Iterator[Cleaned]:
    """Delete logs of runs without activity since then, and models that no run needs; yield what was deleted.

    In the database for all machines, and in the files of this machine, in `home`. Never an entry of the ledger, nor a
    checkpoint, which belongs to the job.
    """
    pieces, sent = LogPieces(ledger.database), UploadedModels(ledger.database, home)
    labels, folders = pieces.labels(), _ended(home, before)
    inactive = _inactive(ledger, before, {_run(label) for label in (*labels, *(each.name for each in folders))})
    yield from _cleaned("logs", "launches", [pieces.delete(each) for each in labels if _run(each) in inactive])
    deleted = [_delete(each) for each in folders if _run(each.name) in inactive]
    yield from _cleaned("logs on this machine", "launches", deleted)
    sizes = [_delete_upload(ledger, sent, each, before) for each in sent.sent_before(before)]
    yield from _cleaned("uploads", "models", [each for each in sizes if each is not None])
    sent.forget_copies(before)


def _run(label: str) -> str:
    return label.rpartition("-")[0]


def _inactive(ledger: Ledger, before: datetime, names: set[str]) -> set[str]:
    """Those of these runs without activity since then: not driven, and without open launches."""
    last = func.max(entries.c.written_at)
    query = select(entries.c.run).group_by(entries.c.run).having(last < before.astimezone(UTC).isoformat())
    with ledger.database.read() as connection:
        quiet = set(connection.execute(query).scalars())
    return {name for name in names & quiet - ledger.driven() if not ledger.account(name).open}


def _ended(home: Path, before: datetime) -> list[Path]:
    """Folders of ended launches on this machine. The folders of others may be needed for teardown."""
    ended = [each / "ended" for each in sorted(Launches(home / "launches").folders()) if (each / "ended").exists()]
    return [each.parent for each in ended if each.stat().st_mtime < before.timestamp()]


def _delete(folder: Path) -> int:
    size_bytes = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    shutil.rmtree(folder)
    return size_bytes


def _delete_upload(ledger: Ledger, sent: UploadedModels, digest: str, before: datetime) -> int | None:
    """Delete a model and return its bytes; None if it is needed. A run submitted at this moment is refused."""
    with ledger.database.write():
        sent_again = digest not in sent.sent_before(before)
        return None if sent_again or _is_needed(ledger, digest, before) else sent.delete(digest)


def _is_needed(ledger: Ledger, digest: str, before: datetime) -> bool:
    """Whether a run of this model waits, can be resumed, or was active since then."""
    submitted = select(runs.c.name).where(runs.c.asked.contains(digest))
    begun = select(entries.c.run).where(entries.c.kind == "started", entries.c.body.contains(digest))
    with ledger.database.read() as connection:
        names = set(connection.execute(submitted.union(begun)).scalars())
    for name in names:
        if not ledger.has_begun(name):
            if waits(name, ledger):
                return True
        elif ledger.account(name).status in UNFINISHED or ledger.lines(name)[-1].written_at >= before:
            return True
    return False


def _cleaned(what: str, of: str, sizes_bytes: list[int]) -> Iterator[Cleaned]:
    if sizes_bytes:
        yield Cleaned(what, f"deleted ({of}: {len(sizes_bytes)}, {sum(sizes_bytes) / 1e6:.1f} MB)")


def give_up_machine(run: str, ledger: Ledger) -> str:
    """Give up the machine that has a run's launches; return one sentence on what happens to the run.

    The end of its launches is unknown. Each is billed until now, but at most for its lifetime: it cannot have cost
    more. A run on rented machines can then be resumed anywhere; one on nodes of the lost machine itself is over.
    """
    name = ledger.find(run)
    with ledger.hold(name):
        account, host = ledger.account(name), other_machine(name, ledger)
        if host is None:
            raise WrongState(f"run '{name}' is {account.status} and waits for no other machine; see: mlcd show {name}")
        lines = ledger.lines(name)
        book = ledger.book(name, WallClock(lines[0].written_at))
        closed: list[Entry] = [_worst_case(each, lines, book.clock.elapsed_s(), host) for each in account.open]
        usd = sum(each.measurement.usd for each in closed if isinstance(each, Settled))
        if runs_on_the_driver(account.job):
            words = f"its machine {host} is gone, and with it what it measured and saved there; begin it anew"
            closed.append(Ended(False, words))
        else:
            closed.append(Stopped(f"its machine {host} is gone"))
            words = f"its machine {host} is gone; go on with: mlcd resume {name}"
        book.write(*closed)
        ledger.set_progress(name, None)
        release_machine(name, ledger)
    return f"{name}: {words}. What was open there counts {format_usd(usd)}, the most it can have cost"


def _worst_case(reserved: Reserved, lines: list[Line], now_s: float, host: str) -> Settled:
    """Settle a launch whose end is unknown at its worst-case cost."""
    order = reserved.launch
    began_s = next(line.elapsed_s for line in lines if line.entry == reserved)
    seconds = max(0.0, now_s - began_s)
    if order.lifetime_s is not None:  # its machines end by themselves after that
        seconds = min(seconds, order.lifetime_s)
    detail = f"its machine {host} is gone; counted at the most that it can have cost"
    usd = order.bill_usd(seconds)
    return Settled(order, Measurement(order.configuration, Outcome.INTERRUPTED, seconds, usd, detail=detail))
