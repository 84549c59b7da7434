"""What is deleted once nobody needs it: old logs and models, of runs that rest, and never an entry of the ledger."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.ledgers import SPACE
from sqlalchemy import insert, select

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.database.files import LogPieces, UploadedModels
from mlcd.core.database.schema import upload_parts, uploads
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Decided, Ledger, Reserved, Settled, Started, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import ServingTask
from mlcd.service.team.administration import Audit
from mlcd.service.workers.cleanup import drop_old
from mlcd.service.workers.submissions import to_json

Mlcd = Callable[..., Any]
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class At(VirtualClock):
    """A clock that has stopped."""

    time: datetime = NOW

    def now(self) -> datetime:
        return self.time


@dataclass(frozen=True)
class Past:
    """A run of the past: how many days ago it was asked for, and what it has come to."""

    days: int
    stands: str  # waits, refused, open, stopped, decided
    model: int


PASTS = st.builds(
    Past, st.integers(0, 200), st.sampled_from(["waits", "refused", "open", "stopped", "decided"]), st.integers(0, 2)
)


def body(model: int) -> bytes:
    return b"model %d" % model


def digest(model: int) -> str:
    return hashlib.sha256(body(model)).hexdigest()


def send(ledger: Ledger, home: Path, model: int, days: int) -> None:
    """A model that was uploaded so long ago."""
    sent, at = UploadedModels(ledger.database, home), NOW - timedelta(days=days)
    with sent.beside() as (path, file):
        file.write(body(model))
        file.close()
        os.utime(sent.store(path, digest(model)), (at.timestamp(), at.timestamp()))
    row = {"digest": digest(model), "name": "m", "size": len(body(model)), "created_at": at.isoformat(), "facts": "{}"}
    with ledger.database.write() as connection:
        connection.execute(insert(uploads).values(row))


def happened(ledger: Ledger, home: Path, past: Past) -> str:
    """The run, as it stands; with a log in the database, and one of this machine, if it ever launched."""
    clock = At(time=NOW - timedelta(days=past.days))
    job = Job("serves", 1.0, on="local", ask=ServingTask(ModelFacts("m"), path=f"upload:{digest(past.model)}"))
    run = Ledger(ledger.database, clock).submit("serves", to_json(job, False))
    if past.stands == "refused":
        ledger.refuse(run, "no")
    if past.stands in ("waits", "refused"):
        return run
    book = ledger.begin("serves", clock, Started(job, SPACE, job.on, Provenance.LIVE, "0"), run=run)
    order = Launch(f"{run}-1", SPACE.configurations[0], Purpose.PROBE, 1.0, None, 0)
    folder = Launches(home / "launches").open(order)
    (folder / "0.log").write_text("words")
    LogPieces(ledger.database).append(order.label, 0, 0, b"words")
    book.write(Reserved(order, "a try", 1.0, 1.0))
    if past.stands == "open":
        return run
    (folder / "ended").write_text("1.0")
    os.utime(folder / "ended", (clock.now().timestamp(),) * 2)
    book.write(Settled(order, Measurement(order.configuration, Outcome.FAILED, 1.0, 0.5)))
    book.write(Stopped("enough") if past.stands == "stopped" else Decided(Decision(order.configuration, "good", True)))
    return run


@given(
    pasts=st.lists(PASTS, max_size=5),
    sent_days=st.lists(st.integers(0, 200), min_size=3, max_size=3),
    days=st.integers(1, 150),
)
def test_only_what_rests_long_enough_and_nobody_needs_is_deleted_and_no_entry_ever(pasts, sent_days, days):
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ledger = stack.enter_context(closing(Ledger(None)))
        for model, ago in enumerate(sent_days):
            send(ledger, home, model, ago)
        named = {happened(ledger, home, past): past for past in pasts}
        before = ledger.since(0), ledger.owners()
        list(drop_old(ledger, home, NOW - timedelta(days=days)))
        assert (ledger.since(0), ledger.owners()) == before
        launched = {run: past for run, past in named.items() if past.stands in ("open", "stopped", "decided")}
        kept = {f"{run}-1" for run, past in launched.items() if past.stands == "open" or past.days <= days}
        assert set(LogPieces(ledger.database).labels()) == kept
        assert {each.name for each in Launches(home / "launches").folders()} == kept
        for model, ago in enumerate(sent_days):
            mine = [past for past in pasts if past.model == model]
            needed = any(
                past.stands in ("waits", "open", "stopped") or (past.stands == "decided" and past.days <= days)
                for past in mine
            )
            check_model(ledger, home, model, there=needed or ago <= days)


def check_model(ledger: Ledger, home: Path, model: int, there: bool) -> None:
    """All of it is there, or nothing."""
    with ledger.database.read() as connection:
        rows = [set(connection.execute(select(table.c.digest)).scalars()) for table in (uploads, upload_parts)]
    assert [digest(model) in found for found in rows] == [there, there]
    assert (home / "uploads" / f"{digest(model)}.onnx").exists() == there


@pytest.fixture
def team(postgres_url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("MLCD_DATABASE_URL", postgres_url)
    with closing(Ledger(postgres_url)) as ledger:
        yield ledger


def test_clean_older_works_on_a_teams_database_and_is_audited(team: Ledger, home: Path, mlcd: Mlcd):
    long_ago = (datetime.now(UTC) - NOW).days + 300
    send(team, home, 0, long_ago)
    run = happened(team, home, Past(long_ago, "decided", 0))
    assert mlcd("clean", "--older", "200y").code == 2
    said = mlcd("clean", "--older", "90d").out
    assert "logs: deleted (launches: 1, 0.0 MB)" in said
    assert "uploads: deleted (models: 1, 0.0 MB)" in said
    assert "Nothing was left behind." in mlcd("clean", "--older", "90d").out
    assert team.account(run).decision is not None
    (entry,) = Audit(team.database, lambda: datetime.now(UTC)).entries()
    assert (entry.action, "models: 1" in entry.detail) == ("clean", True)
