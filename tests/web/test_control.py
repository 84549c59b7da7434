"""How a run goes on over the API: to its end, or only to its decision, whatever was asked when it was submitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stage import API, Stage, staged

from mlcd.assemble import start
from mlcd.backend import Launch, Purpose
from mlcd.ledger import Reserved, Stopped
from mlcd.workers.asked import from_json


@pytest.fixture(params=["service", "ui"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home", mode=request.param) as found:
        yield found


def test_whether_a_run_is_launched_is_as_it_was_said_last(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who, launch=True).json()["run"]
    job, _ = from_json(ledger.asked(run).asked)  # type: ignore[union-attr]
    driven = start(job, ledger, run=run)
    driven.book.write(Stopped("the user stopped"))
    for said, launch in (({"launch": False}, False), ({}, False), ({"launch": True}, True), (None, True)):
        assert stage.ask("POST", f"{API}/runs/{run}/resume", who, said).status == 202
        assert stage.crew.asked[-1] == ("send", run, str(launch))
        assert from_json(ledger.asked(run).asked)[1] is launch  # type: ignore[union-attr]


def test_a_run_whose_job_has_begun_cannot_stop_at_its_decision(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who, launch=True).json()["run"]
    job, _ = from_json(ledger.asked(run).asked)  # type: ignore[union-attr]
    driven = start(job, ledger, run=run)
    decision, account = driven.search(), driven.book.account
    assert decision.configuration is not None
    order = Launch(f"{run}-x", decision.configuration, Purpose.RUN, 1.0, None, account.launches, account.rounds)
    driven.book.write(Reserved(order, "the job itself", 0.01, 60.0))  # and then its process died
    before = stage.written
    refused = stage.ask("POST", f"{API}/runs/{run}/resume", who, {"launch": False})
    assert refused.status == 409
    assert refused.error == f"run '{run}' was launched, and cannot stop at its decision; resume it to its end"
    assert stage.written == before
    assert stage.ask("POST", f"{API}/runs/{run}/resume", who).status == 202
    assert stage.crew.asked[-1] == ("send", run, "True")
