"""The events of a run: the lines of `--watch-json`, and the data of a service's event streams.

docs/reference/events.md promises that properties are added, but never changed or removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from mlcd.core.ledger import Account, Line, Reserved, Settled
from mlcd.core.part import Part
from mlcd.reports.entries import line_words
from mlcd.reports.launch_progress import Headway


class Standing(Part):
    """What every event of a run says: where it stands against its limits."""

    type: str = Field(description="What kind of event this is.")
    time: datetime = Field(description="When it happened.")
    run: str = Field(description="The run's name, for every command that takes one.")
    status: str = Field(description="Where the run stands, as `mlcd runs` has it.")
    provenance: str = Field(
        description="Whose dollars these are: live, recorded or simulated. Only live ones are real."
    )
    elapsed_s: float = Field(description="Seconds of the run's deadline that are used.")
    spent_usd: float = Field(description="What has been spent.")
    reserved_usd: float = Field(description="The worst case of what is under way: set aside, and not spent yet.")
    left_usd: float | None = Field(description="Of the budget, what is not spent; null where there is no budget.")
    left_s: float | None = Field(description="Of the deadline, what is not used; null where there is no deadline.")


class EntryEvent(Standing):
    """An entry was written to the ledger."""

    type: Literal["entry"] = Field("entry", description="What kind of event this is.")
    seq: int = Field(description="The entry's number: it grows, and is never used twice.")
    kind: str = Field(description="The kind of entry: started, reserved, settled, decided ... (reference/ledger.md).")
    words: str = Field(description="What happened, in a sentence.")
    configuration: str | None = Field(description="The machines that it is about; null where it is about none.")
    usd: float | None = Field(description="Of reserved: at the most; of settled: what it cost; else null.")
    seconds: float | None = Field(description="The same in seconds.")


class ProgressEvent(Standing):
    """Launches on real machines have reported where they stand; every two seconds at the most."""

    type: Literal["progress"] = Field("progress", description="What kind of event this is.")
    progress: list[Headway] = Field(description="Each launch that is under way.")


class StateEvent(Standing):
    """Where the run stands as it is taken up: the first line of `mlcd resume` and `mlcd launch`."""

    type: Literal["state"] = Field("state", description="What kind of event this is.")


class EndEvent(Part):
    """The last line, also of what was refused: the answer, and what the process exits with."""

    type: Literal["end"] = Field("end", description="What kind of event this is.")
    time: datetime = Field(description="When it ended.")
    run: str | None = Field(description="The run's name; null where none began.")
    status: str | None = Field(description="Where the run stands; null where none began.")
    exit_code: int = Field(description="What the process exits with (reference/exit-codes.md).")
    because: str = Field(description="The error, in one line; else why it ended so.")
    chosen: str | None = Field(description="The configuration that was decided for; null where there is none.")
    spent_usd: float = Field(description="What the run has spent; 0 where none began.")
    left_usd: float | None = Field(description="Of its budget, what is not spent.")
    left_s: float | None = Field(description="Of its deadline, what is not used.")
    document: dict[str, Any] | None = Field(
        description="The run as -o json prints it (`mlcd schema run`); null of errors."
    )


AnyEvent = Annotated[EntryEvent | ProgressEvent | StateEvent | EndEvent, Field(discriminator="type")]


def events_schema() -> dict[str, Any]:
    """The JSON Schema of a line of `--watch-json`."""
    return TypeAdapter[Any](AnyEvent).json_schema(mode="serialization")


def entry_event(line: Line, account: Account) -> EntryEvent:
    """The event of an entry; `account`: the state of the run after it."""
    configuration, usd, seconds = _amounts(line)
    words = line_words(line, account.job)
    of_entry: dict[str, Any] = {
        "seq": line.seq,
        "kind": line.entry.kind,
        "words": words,
        "configuration": configuration,
    }
    return EntryEvent(**of_entry, usd=usd, seconds=seconds, **_standing(line.run, account, line.written_at))


def progress_event(run: str, account: Account, progress: Sequence[Headway]) -> ProgressEvent:
    """The progress of a run's launches."""
    newest = max((each.at for each in progress), default=datetime.now(UTC))
    return ProgressEvent(progress=list(progress), **_standing(run, account, newest))


def state_event(run: str, account: Account, now: datetime) -> StateEvent:
    """The state of a run."""
    return StateEvent(**_standing(run, account, now))


def end_event(
    run: str,
    account: Account,
    exit_code: int,
    now: datetime,
    because: str = "",
    document: Mapping[str, Any] | None = None,
) -> EndEvent:
    """The last event: how a run ended, or why it is no longer followed."""
    if account.started is None:
        return refused_event(exit_code, because, now, run or None)
    decision, standing = account.decision, _standing(run, account, now)
    chosen = decision.configuration if decision is not None else None
    kept = {name: standing[name] for name in ("time", "run", "status", "spent_usd", "left_usd", "left_s")}
    return EndEvent(
        exit_code=exit_code,
        because=because or _why(account),
        chosen=str(chosen) if chosen is not None else None,
        document=dict(document) if document is not None else None,
        **kept,
    )


def refused_event(exit_code: int, because: str, now: datetime, run: str | None = None) -> EndEvent:
    """The last event of a command that started no run."""
    nothing: dict[str, Any] = dict.fromkeys(("status", "chosen", "left_usd", "left_s", "document"))
    return EndEvent(time=now, run=run, exit_code=exit_code, because=because, spent_usd=0.0, **nothing)


def _standing(run: str, account: Account, time: datetime) -> dict[str, Any]:
    history, goal = account.history, account.job.goal
    return {
        "time": time.astimezone(UTC),
        "run": run,
        "status": str(account.status),
        "provenance": str(account.provenance),
        "elapsed_s": history.elapsed_s,
        "spent_usd": history.spent_usd,
        "reserved_usd": sum(reserved.worst_usd for reserved in account.open),
        "left_usd": None if goal.budget_usd is None else goal.budget_usd - history.spent_usd,
        "left_s": None if goal.deadline_s is None else goal.deadline_s - history.elapsed_s,
    }


def _why(account: Account) -> str:
    if account.ended is not None:
        return account.ended.because
    decision = account.decision
    return "" if decision is None else decision.because or decision.binding


def _amounts(line: Line) -> tuple[str | None, float | None, float | None]:
    match line.entry:
        case Reserved(launch=launch) as entry:
            return str(launch.configuration), entry.worst_usd, entry.worst_s
        case Settled(measurement=m):
            return str(m.configuration), m.usd, m.seconds
        case entry:
            decided = getattr(entry, "decision", entry)
            configuration = getattr(decided, "configuration", None)
            return (str(configuration) if configuration is not None else None), None, None
