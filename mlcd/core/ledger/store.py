"""The ledger: a crash-safe, append-only table of entries on SQLite or PostgreSQL.

Every append is a transaction of its own, on disk before it returns. Triggers refuse changes of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, select

from mlcd.core.clock import Clock
from mlcd.core.database import Database, open_database
from mlcd.core.database.schema import entries as table
from mlcd.core.database.schema import runs as run_table
from mlcd.core.errors import LedgerCorrupt, UnknownName, WrongState
from mlcd.core.history import History
from mlcd.core.ledger.account import Account, BrokenBooks
from mlcd.core.ledger.entries import LINES, Entry, Line, Unreadable, draft, read, read_if_possible, write
from mlcd.core.ledger.labels import Labels, LabelStore, LabelUpdate
from mlcd.core.ledger.lock import HeldRun, driven_runs, holder
from mlcd.core.ledger.lock import held as locked
from mlcd.core.ledger.lock import hold as lock
from mlcd.core.ledger.submissions import Submissions, run_name_prefix

Listener = Callable[[Line], None]

_FIRST = select(func.min(table.c.seq)).where(table.c.run == run_table.c.name).scalar_subquery()
_BEGUN = select(run_table.c.name).where(_FIRST.is_not(None)).order_by(_FIRST)


class Ledger(Submissions, LabelStore):
    """A ledger with any number of runs; any number of threads may read it."""

    def __init__(self, where: Path | str | Database | None, clock: Clock | None = None) -> None:
        """Open a file or the URL of a database, and create what is missing; None keeps the ledger in memory."""
        super().__init__(where if isinstance(where, Database) else open_database(where), clock)
        self._opened = self.database is not where
        self.path = self.database.path
        self._locks = self.path.parent / "locks" if self.path is not None else None
        self._held: dict[str, HeldRun] = {}

    def close(self) -> None:
        """Close the database, unless it was passed in open."""
        if self._opened:
            self.database.close()

    def begin(
        self,
        name: str,
        clock: Clock,
        entry: Entry,
        listen: Listener | None = None,
        run: str | None = None,
        held: ExitStack | None = None,
    ) -> Book:
        """Begin a new run, or a submitted one. `held`: takes the lock of a new run before others can see it."""
        # Entries of a held run are written over the connection that holds its lock.
        is_held = run in self._held or (run is None and held is not None)
        with nullcontext() if is_held else self.database.write():
            if run is not None:
                self._check_waiting(run)
            else:
                run = self._name(name, clock.now())
                if held is not None:
                    held.enter_context(self.hold(run))
            (line,) = self.append(run, clock, [entry])
        book = Book(self, run, clock, Account.replay([(entry, line.elapsed_s)]), listen)
        if listen is not None:
            listen(line)
        return book

    def book(self, run: str, clock: Clock, listen: Listener | None = None) -> Book:
        """An existing run, open for writing."""
        return Book(self, self.find(run), clock, self.account(run), listen)

    def append(self, run: str, clock: Clock, entries: Sequence[Entry]) -> list[Line]:
        """Write these entries, all or none. They are on disk when this returns."""
        drafts = [draft(run, clock, entry) for entry in entries]
        if (held := self._held.get(run)) is not None:
            return held.append(drafts)
        with self.database.write() as connection:
            return write(connection, drafts)

    def lines(self, run: str) -> list[Line]:
        """The entries of a run, in order."""
        name = self.find(run)
        with self.database.read() as connection:
            stored = connection.execute(LINES.where(table.c.run == name)).all()
        try:
            lines = [read(row) for row in stored]
            Account.replay((line.entry, line.elapsed_s) for line in lines)
        except (ValueError, TypeError, BrokenBooks) as error:
            raise LedgerCorrupt(f"damaged in run '{name}'; restore it from a copy", self.database.name) from error
        return lines

    def since(self, seq: int, most: int = 1000) -> list[Line | Unreadable]:
        """The entries of all runs after this number, in order, for followers. A damaged entry affects only its run."""
        with self.database.read() as connection:
            stored = connection.execute(LINES.where(table.c.seq > seq).limit(most)).all()
        return [read_if_possible(row) for row in stored]

    def last_seq(self) -> int:
        """The number of the newest entry; 0 if there is none."""
        with self.database.read() as connection:
            return int(connection.execute(select(func.coalesce(func.max(table.c.seq), 0))).scalar_one())

    def account(self, run: str) -> Account:
        """The state of a run."""
        return Account.replay((line.entry, line.elapsed_s) for line in self.lines(run))

    def accounts(self, name: str, most: int) -> Iterator[Account]:
        """The states of the runs of jobs of this name, the newest first, without damaged ones."""
        for number in sorted(self._numbers(name, begun=True), reverse=True)[:most]:
            with suppress(LedgerCorrupt):
                yield self.account(f"{run_name_prefix(name)}-{number}")

    def runs_at(self, on: str, most: int, owner: str | None = None) -> list[str]:
        """The newest runs at a place, the newest first. `owner`: only those of this member."""
        begun = select(table.c.run).where(table.c.kind == "started", table.c.because.endswith(on, autoescape=True))
        if owner is not None:
            begun = begun.where(table.c.run.in_(select(run_table.c.name).where(run_table.c.owner == owner)))
        with self.database.read() as connection:
            return list(connection.execute(begun.order_by(table.c.seq.desc()).limit(most)).scalars())

    def accounts_at(self, on: str, most: int, owner: str | None = None) -> Iterator[Account]:
        """The states of the runs at a place, the newest first, without damaged ones. `owner`: only this member's."""
        for name in self.runs_at(on, most, owner):
            with suppress(LedgerCorrupt):
                if (account := self.account(name)).job.on == on:
                    yield account

    def runs(self) -> list[str]:
        """The runs that have begun, oldest first."""
        with self.database.read() as connection:
            return list(connection.execute(_BEGUN).scalars())

    def find(self, run: str) -> str:
        """The name of a run that has begun; 'last' is the newest. `WrongState` or `UnknownName` if it has not."""
        if run == "last" and (runs := self.runs()):
            return runs[-1]
        if self.has_begun(run):
            return run
        if (asked := self.submission(run)) is None:
            raise UnknownName("run", run, self.runs())
        if asked.refused is not None:
            raise WrongState(f"run '{run}' never began: {asked.refused}")
        raise WrongState(f"run '{run}' is waiting for a worker; try again when it has begun")

    def label(self, run: str, change: LabelUpdate, who: str | None = None) -> Labels:
        """Change the labels of a run, begun or not, and return them. A run that may still cost money is not archived.

        `who`: the member; None without a team.
        """
        name = run if self.submission(run) is not None else self.find(run)
        if change.archived and (why := self._why_not_archived(name)):
            raise WrongState(f"run '{name}' {why}; archive it when it is over")
        return self._relabel(name, change, who, self._clock.now())

    def hold(self, run: str) -> AbstractContextManager[None]:
        """Hold the lock of the process that drives this run."""
        if self.database.dialect == "postgresql":
            return self._hold_session(run)
        return nullcontext() if self._locks is None else lock(self._locks, run)

    def keep(self, run: str) -> None:
        """Check that this process still holds the lock of a run. Call it now and then, from any thread."""
        if (held := self._held.get(run)) is not None:
            held.keep()

    def driver(self, run: str) -> int | None:
        """The id of the process that drives this run now, or None; 0 if it may be on another machine."""
        if self.database.dialect == "postgresql":
            return 0 if run in driven_runs(self.database) else None
        return None if self._locks is None else holder(self._locks, run)

    def is_driven(self, run: str) -> bool:
        """Whether a process drives this run now."""
        return self.driver(run) is not None

    def driven(self) -> set[str]:
        """The runs that a process drives now."""
        if self.database.dialect == "postgresql":
            return driven_runs(self.database)
        return set() if self._locks is None else locked(self._locks)

    @contextmanager
    def _hold_session(self, run: str) -> Iterator[None]:
        held = HeldRun(self.database, run)
        held.take()
        self._held[run] = held
        try:
            yield
        finally:
            del self._held[run]
            held.release()

    def _why_not_archived(self, run: str) -> str:
        if not self.has_begun(run):
            asked = self.submission(run)
            return "waits for a worker" if asked is not None and asked.refused is None else ""
        if self.is_driven(run):
            return "is under way"
        with suppress(LedgerCorrupt):  # a damaged run may be archived
            return "has launches that are not settled" if self.account(run).open else ""
        return ""

    def _check_waiting(self, run: str) -> None:
        """Raise unless the run was submitted and can begin."""
        asked = self.submission(run)
        if asked is None or asked.refused is not None or self.has_begun(run):
            raise WrongState(f"run '{self.find(run)}' has begun already; go on with: mlcd resume {run}")


class Book:
    """One run of a ledger, open for writing: append an entry, and the account follows."""

    def __init__(self, ledger: Ledger, run: str, clock: Clock, account: Account, listen: Listener | None) -> None:
        self.run = run
        self.clock = clock
        self.account = account
        self._ledger = ledger
        self._listen = listen

    @property
    def history(self) -> History:
        """The history with the time of now, which is later than the last entry."""
        past = self.account.history
        return replace(past, elapsed_s=max(past.elapsed_s, self.clock.elapsed_s()))

    def write(self, *entries: Entry) -> None:
        """Append entries, all or none: check the rules, write to disk, update the account, call the listener."""
        allowed = self.account
        for entry in entries:
            allowed = allowed.after(entry, self.clock.elapsed_s())
        for line in self._ledger.append(self.run, self.clock, entries):
            self.account = self.account.after(line.entry, line.elapsed_s)
            if self._listen is not None:
                self._listen(line)
