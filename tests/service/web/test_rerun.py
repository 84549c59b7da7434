"""A run's job, submitted again under other limits: with the roles, the yes and the places of any submission."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from stage import API, JOB, Stage, staged

from mlcd.core.decision import Decision
from mlcd.core.ledger import Decided, Started, Status
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text
from mlcd.service.workers.submissions import from_json

RENTED = JOB.replace("work: 1M", "work: 1M\n  on: skypilot:aws")


@pytest.fixture(params=["service", "ui"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home", mode=request.param) as found:
        yield found


def test_a_run_is_searched_again_with_another_budget_and_goal(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = stage.submit(who).json()["run"]
    told = stage.ask("POST", f"{API}/runs/{run}/again", who, {"budget": "165", "goal": "cheapest", "launch": True})
    assert (told.status, told.json()["run"]) == (202, "digits-2")
    assert stage.executor.asked[-1] == ("send", "digits-2", "True")
    first, second = (from_json(ledger.submission(each).request)[0] for each in (run, "digits-2"))  # type: ignore[union-attr]
    assert (second.goal.budget_usd, str(second.goal.objective)) == (165.0, "cheapest")
    assert replace(second, goal=first.goal) == first


def test_without_a_word_it_is_the_same_job(stage: Stage) -> None:
    who = "ron" if stage.tokens else None
    run = stage.submit(who).json()["run"]
    again = stage.ask("POST", f"{API}/runs/{run}/again", who).json()["run"]
    asked = [from_json(stage.state.ledger.submission(each).request) for each in (run, again)]  # type: ignore[union-attr]
    assert asked[0] == asked[1]


def test_what_is_wrong_or_unknown_is_refused_and_begins_nothing(stage: Stage) -> None:
    who = "ron" if stage.tokens else None
    run = stage.submit(who).json()["run"]
    before = stage.written
    assert stage.ask("POST", f"{API}/runs/{run}/again", who, {"budget": "much"}).status == 422
    assert stage.ask("POST", f"{API}/runs/{run}/again", who, {"on": "local"}).status in (400, 422)
    assert stage.ask("POST", f"{API}/runs/nobody-1/again", who).status == 404
    assert stage.written == before


def test_a_run_of_the_command_line_has_a_probe_limit_of_its_new_budget(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    run = start(job_from_text("train", JOB, {}), ledger)
    again = stage.ask("POST", f"{API}/runs/{run.name}/again", who, {"budget": "50"}).json()["run"]
    job, _ = from_json(ledger.submission(again).request)  # type: ignore[union-attr]
    assert run.job.search.max_probe_usd is not None
    assert job.search.max_probe_usd is None
    assert job.goal.budget_usd == 50.0


def test_only_runners_may_and_everybody_pays_for_their_own(tmp_path: Path) -> None:
    with staged(tmp_path / "home") as stage:
        run = stage.submit("ron").json()["run"]
        assert stage.ask("POST", f"{API}/runs/{run}/again", "vera").status == 403
        again = stage.ask("POST", f"{API}/runs/{run}/again", "rita").json()["run"]
        assert stage.state.ledger.owners()[again][0] == "rita"


def test_real_money_needs_a_yes_and_the_yes_names_the_new_limit(tmp_path: Path) -> None:
    with staged(tmp_path / "home", count_simulated=True) as stage:
        assert stage.state.members is not None
        told = stage.submit("ron", RENTED, yes=True)
        assert told.status == 202, told.body
        run, before = told.json()["run"], stage.written
        refused = stage.ask("POST", f"{API}/runs/{run}/again", "ron", {"budget": "9"})
        assert refused.status == 409
        assert "up to $9.00" in refused.json()["asks"]
        assert stage.written == before
        agreed = stage.ask("POST", f"{API}/runs/{run}/again", "ron", {"budget": "9", "yes": True})
        assert agreed.status == 202, agreed.body


def test_new_limits_of_a_run_on_rented_machines_need_a_yes(tmp_path: Path) -> None:
    with staged(tmp_path / "home", mode="ui") as stage:
        ledger = stage.state.ledger
        job = job_from_text("train", JOB, {})
        run = stage.submit(None).json()["run"]
        driven = start(job, ledger, run=run)
        driven.book.write(Decided(Decision(None, "nothing fits", binding="the budget")))
        resume = f"{API}/runs/{run}/resume"
        assert stage.ask("POST", resume, None, {"budget": "$20"}).status == 202  # simulated: nobody is asked
        rented = stage.state.ledger.begin("rented", driven.cloud.clock, _rented(driven.book.account.started))
        rented.write(Decided(Decision(None, "nothing fits", binding="the budget")))
        before, path = stage.written, f"{API}/runs/{rented.run}/resume"
        refused = stage.ask("POST", path, None, {"budget": "$20"})
        assert (refused.status, "up to $20.00" in refused.json()["asks"], stage.written) == (409, True, before)
        assert stage.ask("POST", path, None, {"budget": "$20", "yes": True}).status == 202
        assert ledger.account(rented.run).status is Status.SEARCHING


def _rented(begun: Started | None) -> Started:
    assert begun is not None
    return replace(begun, job=replace(begun.job, on="skypilot:aws"), on="skypilot:aws")


def test_the_job_file_is_kept_as_it_was_sent_with_its_options(stage: Stage) -> None:
    who = "ron" if stage.tokens else None
    run = stage.submit(who, name="digits.yaml", options={"budget": "$7", "instances": ["c5.*"]}).json()["run"]
    told = stage.ask("GET", f"{API}/runs/{run}/job", who).json()
    assert (told["kind"], told["name"], told["job"]) == ("train", "digits.yaml", JOB)
    assert told["options"] == {"budget": "$7", "instances": ["c5.*"]}
    again = stage.ask("POST", f"{API}/runs/{run}/again", who, {"budget": "165"}).json()["run"]
    told = stage.ask("GET", f"{API}/runs/{again}/job", who).json()
    assert (told["job"], told["options"]) == (JOB, {"budget": "165", "instances": ["c5.*"]})


def test_of_a_run_of_the_command_line_no_job_file_is_kept_and_that_is_said(stage: Stage) -> None:
    run = start(job_from_text("train", JOB, {}), stage.state.ledger)
    told = stage.ask("GET", f"{API}/runs/{run.name}/job", "vera" if stage.tokens else None)
    assert (told.status, "was not kept" in told.error) == (404, True)


def test_many_at_once_are_accepted_only_as_far_as_the_budget_goes(tmp_path: Path) -> None:
    with staged(tmp_path / "home", count_simulated=True) as stage:
        assert stage.state.members is not None
        stage.state.members.change("ron", budget_usd=12.0)
        run = stage.submit("ron").json()["run"]  # of $5
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: stage.ask("POST", f"{API}/runs/{run}/again", "ron").status, range(16)))
        assert told.count(202) == 1
        assert set(told) <= {202, 409, 429}


def test_a_place_that_only_a_command_can_name_is_not_taken_for_another(stage: Stage) -> None:
    who, ledger = "ron" if stage.tokens else None, stage.state.ledger
    begun = start(job_from_text("train", JOB, {}), ledger)
    on = "local:/home/me/nodes.yaml"
    started = begun.book.account.started
    assert started is not None
    moved = replace(started, job=replace(started.job, on=on), on=on)
    run, before = ledger.begin("moved", begun.cloud.clock, moved).run, len(ledger.waiting())
    told = stage.ask("POST", f"{API}/runs/{run}/again", who)
    assert (told.status, "start the run in a terminal" in told.error) == (422, True)
    assert "/home/me" not in told.error
    assert len(ledger.waiting()) == before
