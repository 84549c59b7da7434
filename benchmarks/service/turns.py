"""Which run had which slot when: a database trigger of the benchmark records each change of the queue.

From these records alone follows, for each run, when a slot was free for it, and which run got it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.core.database import Database

TRIGGER = """
CREATE TABLE benchmark_turns (
    id bigserial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp(),
    run text, member text, computes boolean, worker bigint, status text
);
CREATE FUNCTION benchmark_turn() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    job procrastinate_jobs := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    IF job.args ? 'run' THEN
        INSERT INTO benchmark_turns (run, member, computes, worker, status) VALUES (
            job.args ->> 'run', job.args ->> 'member', (job.args ->> 'computes')::boolean, job.worker_id,
            CASE WHEN TG_OP = 'DELETE' THEN 'over' ELSE job.status::text END
        );
    END IF;
    RETURN NULL;
END;
$$;
CREATE TRIGGER benchmark_turn AFTER INSERT OR UPDATE OF status OR DELETE ON procrastinate_jobs
    FOR EACH ROW EXECUTE FUNCTION benchmark_turn();
"""


@dataclass(frozen=True)
class Change:
    """A run was submitted (todo), taken (doing), or ended, at this second."""

    at_s: float
    run: str
    member: str
    computes: bool
    worker: int | None
    status: str


@dataclass(frozen=True)
class Turn:
    """A run's turn, in seconds.

    `due_s`: from when on it waits for other members' runs, not its owner's: its submission, or, if that is later, the
    last moment before its start at which a run of its owner was taken or ended. `slot_s`: the time of one slot. If
    none was free for it when it was due, that is how long the run had held its slot, from its start to its end, by
    whose end one first became free. If one was free, it is how long another's run, which got it first, held it; 0 if
    none did. `behind`: how many runs of others were taken where it might have been, from when it was due to its start.
    """

    run: str
    member: str
    due_s: float
    taken_s: float
    over_s: float
    slot_s: float
    behind: int

    @property
    def waited_s(self) -> float:
        return self.taken_s - self.due_s


@dataclass(frozen=True)
class Slots:
    """The workers and the slots of each. The rules: docs/howto/service.md, 'Fair shares'."""

    workers: tuple[int, ...]
    at_once: int

    def free(self, run: Change, doing: dict[str, Change]) -> bool:
        """Whether a slot is free for it."""
        return any(self._free_at(worker, run, doing) for worker in self.workers)

    def _free_at(self, worker: int, run: Change, doing: dict[str, Change]) -> bool:
        here = [each for each in doing.values() if each.worker == worker]
        mine, computing = sum(each.member == run.member for each in here), sum(each.computes for each in here)
        shared = len(here) < self.at_once and mine < max(1, self.at_once // 2)
        return shared and (not run.computes or computing < max(1, self.at_once - 1))


class Log:
    """All changes, and who held the slots after each."""

    def __init__(self, changes: Sequence[Change], slots: Slots) -> None:
        self._changes, self._slots = changes, slots
        self._doing: list[dict[str, Change]] = [{}]
        """The running runs before each change, and after the last one."""
        for each in self._changes:
            others = {run: doing for run, doing in self._doing[-1].items() if run != each.run}
            self._doing.append(others | ({each.run: each} if each.status == "doing" else {}))

    def turns(self) -> list[Turn]:
        """The turns of all finished runs, in the order in which they were taken."""
        submitted: dict[str, int] = {}
        found = []
        for number, each in enumerate(self._changes):
            submitted.setdefault(each.run, number)
            if each.status == "doing" and (over_s := self._over_s(number)) is not None:
                found.append(self._turn(submitted[each.run], number, over_s))
        return found

    def _turn(self, submitted: int, taken: int, over_s: float) -> Turn:
        start = self._changes[taken]
        mine = (n for n in range(taken - 1, submitted, -1) if self._is_slot_of(start.member, n))
        due = next(mine, submitted)
        free = [number for number in range(due + 1, taken + 1) if self._slots.free(start, self._doing[number])]
        before = [n for n in free if n < taken and self._changes[n].status == "doing"]
        if free and free[0] > due + 1:
            left = self._changes[free[0] - 1]
            slot_s = left.at_s - self._doing[free[0] - 1][left.run].at_s
        else:
            slot_s = (self._over_s(before[0]) or over_s) - self._changes[before[0]].at_s if before else 0.0
        return Turn(start.run, start.member, self._changes[due].at_s, start.at_s, over_s, slot_s, len(before))

    def _is_slot_of(self, member: str, number: int) -> bool:
        """Whether a run of this member got or left a slot."""
        each = self._changes[number]
        return each.member == member and (each.status == "doing" or each.run in self._doing[number])

    def _over_s(self, taken: int) -> float | None:
        """When the run that was taken then left its slot."""
        run = self._changes[taken].run
        return next((each.at_s for each in self._changes[taken + 1 :] if each.run == run), None)


def record_changes(database: Database) -> None:
    """Install the trigger; the queue's tables must exist."""
    with database.write() as connection:
        connection.connection.dbapi_connection.execute(TRIGGER)  # several statements, of which one has a '?'


def recorded_changes(database: Database) -> list[Change]:
    """All recorded changes."""
    query = "SELECT at, run, member, computes, worker, status FROM benchmark_turns ORDER BY id"
    with database.read() as connection:
        rows = connection.exec_driver_sql(query).all()
    return [Change((row.at - rows[0].at).total_seconds(), *row[1:]) for row in rows]
