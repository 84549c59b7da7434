"""How a run goes on over the API: to its end, or only to its decision, whatever was asked when it was submitted."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from stage import API, Stage, staged

from mlcd.core.backend import Launch, Purpose
from mlcd.core.decision import Decision
from mlcd.core.errors import LedgerUnreachable
from mlcd.core.ledger import Decided, Ended, Reserved, Settled, Status, Stopped
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.run import start
from mlcd.core.runs.run_machine import claim_for_this_machine
from mlcd.service.web.app import ADOPT_AFTER, _adopting_submissions
from mlcd.service.workers.submissions import from_json


@pytest.fixture(params=["service", "ui"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home", mode=request.param) as found:
        yield found


def test_whether_a_run_is_launched_is_as_it_was_said_last(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who, launch=True).json()["run"]
    job, _ = from_json(ledger.submission(run).request)  # type: ignore[union-attr]
    driven = start(job, ledger, run=run)
    driven.book.write(Stopped("the user stopped"))
    for said, launch in (({"launch": False}, False), ({}, False), ({"launch": True}, True), (None, True)):
        assert stage.ask("POST", f"{API}/runs/{run}/resume", who, said).status == 202
        assert stage.executor.asked[-1] == ("send", run, str(launch))
        assert from_json(ledger.submission(run).request)[1] is launch  # type: ignore[union-attr]


def test_a_run_whose_job_has_begun_cannot_stop_at_its_decision(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who, launch=True).json()["run"]
    job, _ = from_json(ledger.submission(run).request)  # type: ignore[union-attr]
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
    assert stage.executor.asked[-1] == ("send", run, "True")


def test_an_infeasible_run_goes_on_under_new_limits(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who, launch=True).json()["run"]
    job, _ = from_json(ledger.submission(run).request)  # type: ignore[union-attr]
    driven = start(job, ledger, run=run)
    driven.book.write(Decided(Decision(None, "nothing fits", binding="the budget")))
    resume = f"{API}/runs/{run}/resume"
    assert stage.ask("POST", resume, who).status == 409
    assert stage.ask("POST", resume, who, {"budget": "much"}).status == 422
    assert stage.ask("POST", resume, who, {"budget": "$0"}).status == 422
    assert stage.ask("POST", resume, who, {"budget": "$20", "deadline": "9h"}).status == 202
    assert stage.executor.asked[-1] == ("send", run, "True")
    account = ledger.account(run)
    assert (account.status, account.job.goal.budget_usd) == (Status.SEARCHING, 20.0)


def test_a_run_that_ended_at_its_limit_stops_at_its_decision_under_new_ones(stage: Stage) -> None:
    """As `mlcd resume --budget` asks for at a terminal, to show the decision before it is launched."""
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who, launch=True).json()["run"]
    job, _ = from_json(ledger.submission(run).request)  # type: ignore[union-attr]
    driven = start(job, ledger, run=run)
    decision, account = driven.search(), driven.book.account
    assert decision.configuration is not None
    order = Launch(f"{run}-x", decision.configuration, Purpose.RUN, 1.0, None, account.launches, account.rounds)
    driven.book.write(Reserved(order, "the job itself", 0.01, 60.0))
    limit = Measurement(decision.configuration, Outcome.AT_THE_LIMIT, 60.0, 0.01, saved_samples=1.0)
    driven.book.write(Settled(order, limit), Ended(False, "the job ended: at the limit"))
    resume = f"{API}/runs/{run}/resume"
    assert stage.ask("POST", resume, who, {"launch": False}).status == 409
    assert stage.ask("POST", resume, who, {"launch": False, "deadline": "900h"}).status == 202
    assert stage.executor.asked[-1] == ("send", run, "False")
    assert ledger.account(run).status is Status.SEARCHING


def test_only_an_admin_can_say_that_a_machine_is_gone(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(tmp_path / "home", postgres_url) as stage:
        ledger = stage.state.ledger
        run = stage.submit("ron").json()["run"]
        job, _ = from_json(ledger.submission(run).request)  # type: ignore[union-attr]
        driven = start(job, ledger, run=run)
        order = Launch(f"{run}-1", driven.cloud.space.configurations[0], Purpose.PROBE, 1.0, 60.0, 0)
        driven.book.write(Reserved(order, "a probe", 0.01, 60.0))
        monkeypatch.setenv("MLCD_HOME", str(tmp_path / "there"))
        claim_for_this_machine(run, ledger)
        monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
        words = stage.ask("POST", f"{API}/runs/{run}/resume", "ada").json()["words"]
        assert words == f"{run} continues as soon as a worker on {platform.node()} takes it"
        before, down = stage.written, f"{API}/runs/{run}/down"
        refused = stage.ask("POST", down, "ron", {"machine_gone": True})
        assert (refused.status, "only an admin" in refused.error) == (403, True)
        assert stage.written == before
        told = stage.ask("POST", down, "ada", {"machine_gone": True})
        assert told.status == 202
        assert f"go on with: mlcd resume {run}" in told.json()["words"]
        assert stage.executor.asked[-1] == ("withdraw", run)
        assert ledger.account(run).open == ()
        assert stage.ask("POST", down, "ada", {"machine_gone": True}).status == 409
        outcomes = [(each.who, each.action, each.outcome) for each in stage.state.audit.entries(3)]
        assert outcomes == [
            (who, "machine gone", how) for who, how in (("ada", "refused"), ("ada", "ok"), ("ron", "refused"))
        ]
        assert stage.ask("POST", down, "ron", {"machine_gone": "yes"}).status == 400


def test_there_is_nothing_to_take_down_of_a_run_that_is_over(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who).json()["run"]
    job, _ = from_json(ledger.submission(run).request)  # type: ignore[union-attr]
    driven = start(job, ledger, run=run)
    down = f"{API}/runs/{run}/down"
    assert stage.ask("POST", down, who).status == 202
    driven.search()
    driven.launch()
    before = stage.written
    refused = stage.ask("POST", down, who)
    assert (refused.status, refused.error) == (409, f"run '{run}' is finished; there is nothing to take down")
    assert stage.written == before


def test_runs_that_nobody_drives_any_more_are_found_as_interrupted(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    interrupted, held, over = (stage.submit(who).json()["run"] for _ in range(3))
    job, _ = from_json(ledger.submission(interrupted).request)  # type: ignore[union-attr]
    for run in (interrupted, held):
        start(job, ledger, run=run)
    start(job, ledger, run=over).search()
    with ledger.hold(held):
        stage.look()
        told = {
            status: {each["run"] for each in stage.ask("GET", f"{API}/runs?status={status}", who).json()["runs"]}
            for status in ("interrupted", "searching", "decided")
        }
    assert told == {"interrupted": {interrupted}, "searching": {interrupted, held}, "decided": {over}}


def test_a_service_without_a_worker_says_so(tmp_path: Path) -> None:
    words = "no worker is running: submitted runs wait; start one with mlcd worker, or mlcd service --workers N"
    with staged(tmp_path / "home") as stage:
        stage.executor.workers = 0
        health = stage.ask("GET", f"{API}/health")
        assert (health.status, health.json()["ok"], health.json()["trouble"]) == (200, False, words)
        sent = stage.submit("ron")
        assert (sent.status, sent.json()["note"]) == (202, words)
    with staged(tmp_path / "there") as stage:
        assert stage.ask("GET", f"{API}/health").json()["ok"]
        assert stage.submit("ron").json()["note"] == ""
    with staged(tmp_path / "ui", mode="ui") as stage:
        stage.executor.workers = 0
        assert stage.ask("GET", f"{API}/health").json()["ok"], "one person's runs need no worker"


def test_what_was_stored_but_not_queued_is_queued_as_soon_as_the_database_is_back(stage: Stage) -> None:
    async def until_adopted_twice() -> None:
        async with _adopting_submissions(stage.state, every_s=0.001):
            while stage.executor.asked.count(("adopt", str(ADOPT_AFTER))) < 2:
                await asyncio.sleep(0.001)

    adopt = stage.executor.adopt

    def away_at_first(older_than: timedelta) -> int:
        adopt(older_than)
        raise LedgerUnreachable("the database is away")

    stage.executor.adopt = away_at_first  # type: ignore[method-assign]
    asyncio.run(until_adopted_twice())
