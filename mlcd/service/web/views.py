"""A cache of rendered views of runs (page, report, tables): rendered once for each state of a run, kept as bytes."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from zlib import crc32

from mlcd.core.decision import Decision
from mlcd.core.errors import LedgerCorrupt, WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Labels, Line
from mlcd.core.ledger.entries import to_json
from mlcd.core.version import VERSION
from mlcd.planners.functions.nouns import FunctionsTask, Planned, plan_of
from mlcd.reports.functions.rows import shown_points
from mlcd.reports.html import MOST_POINTS
from mlcd.reports.view.summary import REFUSED, Summary
from mlcd.reports.view.view import waiting_view
from mlcd.service.web.feed import Feed
from mlcd.service.web.run_cache import NOTHING

MOST = 400  # cached views; the least recently used are evicted first


@dataclass(frozen=True)
class Snapshot:
    """An immutable snapshot of a run, from which all views are rendered."""

    run: str
    lines: tuple[Line, ...]
    account: Account
    driven: bool
    summary: Summary

    @property
    def labels(self) -> Labels:
        """The run's labels."""
        return Labels(*(getattr(self.summary, name) for name in Labels.__slots__))

    @property
    def boundary(self) -> tuple[Planned, ...]:
        """For a run on functions: the plans that the decision chose from, thinned out, since there may be thousands."""
        if not isinstance(self.account.job.ask, FunctionsTask) or self.account.decision is None:
            return ()
        first = self.lines[0]
        return _boundary(_Decided(self.account.job, self.account.decision, (self.run, first.seq, first.written_at)))


Render = Callable[[Snapshot], bytes]


@dataclass(frozen=True)
class _Decided:
    """A cache key: a decision, identified by the first entry of its run, which is cheap to hash."""

    job: Job = field(compare=False)
    decision: Decision = field(compare=False)
    first: tuple[str, int, datetime]


@lru_cache(maxsize=64)
def _boundary(decided: _Decided) -> tuple[Planned, ...]:
    """Recompute the boundary from the stored calibration. Cached, since pages are rendered again at each change."""
    from mlcd.planners.functions.prepare import boundary_of

    return tuple(shown_points(boundary_of(decided.job, plan_of(decided.decision).calibration), MOST_POINTS))


class Views:
    """The newest view of each kind and run. A view is valid for a last entry, a driven state and a set of labels."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._made: OrderedDict[tuple[str, str], tuple[tuple[int, bool, Labels], asyncio.Future[bytes]]] = OrderedDict()

    async def snapshot(self, run: str) -> Snapshot:
        """A snapshot of a known run; `WrongState` if it has no entries (yet)."""
        brief, whole = self._feed.run_states[run], await self._feed.whole(run)
        if brief.damaged:
            raise LedgerCorrupt(f"run '{run}' cannot be read: {brief.damaged}")
        summary = brief.summary
        if whole is not None and summary is not None:
            return Snapshot(run, tuple(whole.lines), whole.account, brief.driven, summary)
        if summary is not None and summary.status == REFUSED:
            raise WrongState(f"run '{run}' never began: {summary.because}")
        raise WrongState(f"run '{run}' is waiting for a worker")

    def tag(self, run: str) -> str:
        """The `ETag` of the run's current state."""
        brief = self._feed.run_states[run]
        status = brief.summary.status if brief.summary is not None and not brief.last else ""
        progress = f"-{crc32(brief.progress):x}" if brief.progress != NOTHING else ""
        return f'"{VERSION}-{brief.last}-{int(brief.driven)}{status}-{self._feed.revision(run)}{progress}"'

    async def rendered(self, what: str, run: str, render: Render) -> bytes:
        """The view of the run's current state, from the cache or rendered in a thread, once for all who wait."""
        snapshot = await self.snapshot(run)
        key, state = (what, run), (snapshot.lines[-1].seq, snapshot.driven, snapshot.labels)
        kept = self._made.get(key)
        if kept is None or kept[0] != state or _has_failed(kept[1]):
            kept = self._made[key] = state, asyncio.ensure_future(asyncio.to_thread(render, snapshot))
            if len(self._made) > MOST:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return await asyncio.shield(kept[1])

    def waiting(self, run: str) -> bytes | None:
        """The page of a run that has not begun; None for one that has."""
        brief = self._feed.run_states[run]
        return None if brief.last or brief.summary is None else as_json(waiting_view(brief.summary))

    def with_progress(self, run: str, body: bytes) -> bytes:
        """Add the progress of launches to a run's page; it changes far more often than the rest."""
        return b'%b,"progress":%b}' % (body.removesuffix(b"}"), self._feed.run_states[run].progress)


def _has_failed(task: asyncio.Future[bytes]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def as_json(document: object) -> bytes:
    """Compact JSON; NaN and infinity are errors."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def entries_json(run: str, lines: Sequence[Line], driven: bool) -> bytes:
    """The entries as JSON. Their stored text is inserted as it is, without parsing it."""
    entries = ",".join(
        f'{{"seq":{line.seq},"run":{json.dumps(line.run)},"written_at":"{line.written_at.isoformat()}",'
        f'"elapsed_s":{json.dumps(line.elapsed_s)},"entry":{to_json(line.entry)}}}'
        for line in lines
    )
    return f'{{"run":{json.dumps(run)},"entries":[{entries}],"driven":{json.dumps(driven)}}}'.encode()
