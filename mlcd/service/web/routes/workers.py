"""The workers, the runs that they drive, and the queue."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool

from mlcd.core.part import Part, part_fields
from mlcd.core.units import format_duration
from mlcd.service.web.errors import error_responses
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import RunName
from mlcd.service.web.state import NO_WORKER, CurrentState
from mlcd.service.workers.roster import Roster, Worker

router = APIRouter(tags=["workers"])
Moment = Annotated[str, BeforeValidator(lambda at: at.astimezone(UTC).isoformat() if isinstance(at, datetime) else at)]
"""A time of day, ISO 8601 in UTC."""
ErrandName = Annotated[str, Field(description="see through; see through, and launch; take down.")]
Owner = Annotated[str | None, Field(description="The member whose run it is; null for nobody's.")]


class DrivenRun(Part):
    """A run that a worker has taken."""

    run: str = Field(description="The run's name.")
    errand: ErrandName
    member: Owner
    since: Moment | None = Field(description="When it was taken.")


class WorkerState(Part):
    """A worker. An older version of MLCD does not report its host, process and slots."""

    number: int = Field(description="Its number in the queue.")
    host: str = Field(description="The machine it runs on; empty if not reported.")
    process: int | None = Field(description="Its process id there.")
    slots: int | None = Field(description="The most runs that it drives at once.")
    version: str = Field(description="Its version of MLCD; empty if not reported.")
    since: Moment | None = Field(description="When it started.")
    seen_at: Moment = Field(description="Its last heartbeat.")
    silent_s: float = Field(description="Seconds since the last heartbeat.")
    alive: bool = Field(description="Whether the last heartbeat is recent.")
    runs: list[DrivenRun] = Field(description="The runs that it drives.")


class QueuedRun(Part):
    """A run in the queue."""

    place: int = Field(description="Its position in the queue, from 1; it may change as other runs end.")
    run: str = Field(description="The run's name.")
    errand: ErrandName
    member: Owner
    since: Moment | None = Field(description="When it was queued.")
    not_before: Moment | None = Field(description="The time of its next retry; null: as soon as it is its turn.")


class WorkersAnswer(Part):
    """The workers and the queue at one moment."""

    at: Moment = Field(description="The time of this answer.")
    workers: list[WorkerState] = Field(description="Live workers, and dead ones that still have a run.")
    waiting: list[QueuedRun] = Field(description="The queue, in the order of turns.")
    trouble: str = Field(description="Why no run is being taken; else empty.")


class DriverAnswer(Part):
    """Who drives a run, or what it waits for."""

    run: str = Field(description="The run's name.")
    state: Literal["waits", "driven", "silent", "nobody"] = Field(
        description="silent: its worker sends no heartbeat; nobody: it is neither queued nor driven."
    )
    words: str = Field(description="The state in a sentence; empty for nobody.")
    place: int | None = Field(description="Its position in the queue, from 1.")
    waiting: int = Field(description="The length of the queue.")
    worker: int | None = Field(description="The number of its worker.")
    host: str = Field(description="Its worker's machine; else empty.")
    since: Moment | None = Field(description="Since when it has been queued or driven.")
    seen_at: Moment | None = Field(description="The last heartbeat of its worker.")


@router.get("/workers", summary="Who drives what, and what waits", responses=error_responses())
async def list_workers(state: CurrentState, who: Viewer) -> WorkersAnswer:
    """The workers and the queue. A worker counts as dead ten seconds after its last heartbeat."""
    roster = await run_in_threadpool(state.executor.roster)
    return WorkersAnswer(
        at=roster.at.astimezone(UTC).isoformat(),
        workers=[_worker(each, roster.at) for each in roster.workers],
        waiting=[QueuedRun.model_validate(each) for each in roster.waiting],
        trouble=NO_WORKER if roster.alive == 0 else "",
    )


@router.get("/runs/{run}/driver", summary="Who drives a run, or what it waits for", responses=error_responses(404))
async def driver(run: RunName, state: CurrentState, who: Viewer) -> DriverAnswer:
    """Its position in the queue while it waits; its worker and the last heartbeat while it is driven."""
    roster, is_driven = await run_in_threadpool(state.executor.roster), state.feed.run_states[run].driven
    return driver_of(run, roster, is_driven)


def driver_of(run: str, roster: Roster, is_driven: bool) -> DriverAnswer:
    """`is_driven`: whether a process, a worker's or one of the command line, holds the run's lock."""
    if (found := roster.driver(run)) is not None:
        worker, driving = found
        state, words = ("driven", _driven_words(worker)) if worker.alive else ("silent", _silent_words(worker, roster))
        seen = {"worker": worker.number, "host": worker.host, "seen_at": worker.seen_at}
        return _answer(run, roster, state=state, words=words, since=driving.since, **seen)
    if (queued := roster.place(run)) is not None:
        turn = f"waits for a worker: {queued.place} of {len(roster.waiting)} in the queue"
        words = turn if roster.alive else NO_WORKER
        return _answer(run, roster, state="waits", words=words, since=queued.since, place=queued.place)
    if is_driven:
        return _answer(run, roster, state="driven", words="driven by a command in a terminal")
    return _answer(run, roster, state="nobody", words="")


def _answer(run: str, roster: Roster, **known: Any) -> DriverAnswer:
    nothing: dict[str, Any] = {"place": None, "worker": None, "host": "", "since": None, "seen_at": None}
    return DriverAnswer(run=run, waiting=len(roster.waiting), **(nothing | known))


def _driven_words(worker: Worker) -> str:
    return f"driven by worker {worker.number}{f' on {worker.host}' if worker.host else ''}"


def _silent_words(worker: Worker, roster: Roster) -> str:
    silent_s = (roster.at - worker.seen_at).total_seconds()
    who = f"its worker{f' on {worker.host}' if worker.host else ''}"
    then = "another one takes over" if roster.alive else NO_WORKER
    return f"{who} has sent no heartbeat for {format_duration(silent_s)}; {then}"


def _worker(worker: Worker, at: datetime) -> WorkerState:
    runs = [DrivenRun.model_validate(each) for each in worker.runs]
    silent_s = max(0.0, (at - worker.seen_at).total_seconds())
    return WorkerState(**part_fields(WorkerState, worker, runs=runs, silent_s=silent_s))
