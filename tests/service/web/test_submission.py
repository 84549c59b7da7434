"""From a request to a run that waits: what is read, where it may run, and whose budget it comes out of."""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import API, JOB, staged

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.database import open_database
from mlcd.core.errors import UserError
from mlcd.core.job import Job, only_computed
from mlcd.core.ledger import Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.runs.run import start, with_local_files
from mlcd.service.team.budget import Per
from mlcd.service.web.places import confined, internal_place, public_place
from mlcd.service.web.state import PLACES, Settings
from mlcd.service.web.untrusted_input import TEXT, Limits, in_child_process
from mlcd.service.workers.submissions import from_json

ROOT = Path(__file__).parents[3]
SPACE = Space((Choice(Offer("small", 1.0, 4, 16), (1,)),))
RECORDING = ROOT / "examples" / "recordings" / "char-rnn-local"
SIMULATED_AND_LOCAL = {"places": ("simulated", "recorded", "local"), "recordings": {"char-rnn": RECORDING}}


class Earlier(VirtualClock):
    """Of a run some months ago."""

    def now(self):
        return super().now() - timedelta(days=70)


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request, tmp_path):
    """A service on each database."""
    where = None
    if request.param == "postgresql":
        where = open_database(request.getfixturevalue("postgres_url"))
    with staged(tmp_path / "home", where) as stage:
        yield stage


def submit(stage, who, budget="5", on="local"):
    """A job on this machine, whose hours have a price, unless told otherwise."""
    return stage.submit(who, options={"on": on, "budget": budget})


@pytest.fixture
def service(tmp_path):
    with staged(tmp_path / "home", **SIMULATED_AND_LOCAL) as stage:
        yield stage


def test_who_is_over_budget_is_refused_before_anything_is_reserved_and_told_what_is_left(stage):
    stage.state.members.change("ron", budget_usd=12.0)
    assert submit(stage, "ron").status == 202
    before = stage.written
    refused = submit(stage, "ron", "40")
    assert refused.status == 409
    assert refused.json()["left_usd"] == 7.0
    assert refused.error == "ron has $7.00 left of $12.00; this job may spend $40.00: lower its budget, or ask an admin"
    assert stage.written == before
    assert stage.state.audit.entries(1)[0].outcome == "refused"
    unlimited = submit(stage, "ron", "none")
    assert unlimited.status == 422
    assert "$7.00" in unlimited.error
    assert stage.written == before
    assert submit(stage, "ron", "7").status == 202
    assert submit(stage, "ron", "0.01").json()["left_usd"] == 0.0


def test_a_months_budget_is_renewed_and_the_refusal_says_when(stage):
    stage.state.members.change("ron", budget_usd=12.0, budget_per=Per.MONTH)
    run = submit(stage, "ron").json()["run"]
    refused = submit(stage, "ron", "8")
    told = stage.ask("GET", f"{API}/me", "ron").json()
    assert refused.error.startswith(f"ron has $7.00 left of $12.00 a month, renewed on {told['renewed_on']}; ")
    # What was settled in an earlier month counts no more, and what the run can still spend does.
    ledger = stage.state.ledger
    job, _ = from_json(ledger.submission(run).request)
    earlier = Earlier()
    ledger.begin(job.name, earlier, Started(job, SPACE, "local", Provenance.LIVE, "0"), run=run)
    order = Launch(f"{run}-1", SPACE.configurations[0], Purpose.PROBE, 1.0, None, 0, 0)
    seen = Measurement(SPACE.configurations[0], Outcome.OK, 60.0, 4.0, 1.0)
    ledger.append(run, earlier, [Reserved(order, "to see", 4.0, 60.0), Settled(order, seen)])
    (ron,) = [each for each in stage.ask("GET", f"{API}/members", "ada").json()["members"] if each["name"] == "ron"]
    assert (ron["spent_usd"], ron["claimed_usd"], ron["left_usd"]) == (0.0, 1.0, 11.0)
    stage.state.members.change("ron", budget_per=Per.TOTAL)
    (ron,) = [each for each in stage.ask("GET", f"{API}/members", "ada").json()["members"] if each["name"] == "ron"]
    assert (ron["spent_usd"], ron["claimed_usd"], ron["left_usd"]) == (4.0, 1.0, 7.0)


def test_only_what_is_simulated_or_recorded_is_free():
    free = [
        on
        for on in (*PLACES, "recorded:a", "functions:simulated", "functions:aws_lambda", "local:x")
        if only_computed(on)
    ]
    assert free == ["simulated", "recorded", "recorded:a", "functions:simulated"]


@pytest.mark.parametrize("counted", [False, True])
def test_what_costs_nothing_counts_only_where_the_service_is_told_to(tmp_path, counted):
    with staged(tmp_path, **SIMULATED_AND_LOCAL, count_simulated=counted) as service:
        service.state.members.change("ron", budget_usd=1.0)
        check = {"kind": "train", "job": JOB, "options": {"on": "simulated"}}
        left_usd = service.ask("POST", f"{API}/checks", "ron", check).json()["left_usd"]
        assert left_usd == (1.0 if counted else None)
        for on in ("simulated", "recorded:char-rnn"):
            told = [submit(service, "ron", budget, on).status for budget in ("5", "none")]
            assert told == ([409, 422] if counted else [202, 202])
        assert submit(service, "ron").json()["left_usd"] == 1.0


def test_a_teams_budget_holds_for_all_of_it(stage):
    for name in ("ron", "rita"):
        stage.state.members.change(name, team="lab")
    stage.state.members.set_team_budget("lab", 8.0)
    assert submit(stage, "ron").status == 202
    refused = submit(stage, "rita")
    assert refused.status == 409
    assert refused.json()["left_usd"] == 3.0
    assert submit(stage, "ada").status == 202  # no member of the lab


def test_of_many_who_submit_at_once_only_as_many_pass_as_the_budget_holds(stage):
    stage.state.members.change("ron", budget_usd=12.0)
    answers: list[int] = []

    threads = [threading.Thread(target=lambda: answers.append(submit(stage, "ron").status)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(answers) == [202, 202, 409, 409, 409, 409]
    assert len(stage.state.ledger.waiting()) == 2


def test_what_was_submitted_is_what_a_worker_will_read(service):
    answer = service.submit("ron", options={"budget": "3", "nodes": "1..2", "goal": "fastest"}, launch=True)
    run = answer.json()["run"]
    assert service.executor.asked == [("send", run, "True")]
    asked = service.state.ledger.submission(run)
    job, launch = from_json(asked.request)
    assert (asked.owner, launch, job.name, job.goal.budget_usd, job.search.nodes) == (
        "ron",
        True,
        "digits",
        3.0,
        (1, 2),
    )
    entry = service.state.audit.entries(1)[0]
    assert (entry.who, entry.action, entry.about, entry.outcome) == ("ron", "submit", run, "ok")


def test_a_check_says_what_would_be_run_and_reserves_nothing(service):
    service.state.members.change("ron", budget_usd=50.0)
    before = service.written
    told = service.ask("POST", f"{API}/checks", "ron", {"kind": "train", "job": JOB}).json()
    assert told == {
        "job": "digits",
        "goal_words": "fastest within $5.00",
        "configurations": 8,
        "types": ["c5.4xlarge", "g4dn.xlarge"],
        "on": "simulated",
        "budget_usd": 5.0,
        "left_usd": None,  # it costs nothing
        "ahead": None,
        "asks": None,
        "credentials": [],
    }
    real = service.ask("POST", f"{API}/checks", "ron", {"kind": "train", "job": JOB, "options": {"on": "local"}}).json()
    assert (real["configurations"], real["types"], real["on"], real["left_usd"]) == (None, [], "local", 50.0)
    assert service.written == before


def test_a_recording_is_asked_for_by_its_name_and_no_path_of_it_is_told(service):
    text = (ROOT / "examples" / "pytorch-char-rnn" / "job.yaml").read_text()
    body = {"kind": "train", "job": text, "options": {"on": "recorded:char-rnn"}}
    told = service.ask("POST", f"{API}/checks", "ron", body)
    assert told.status == 200, told.body
    assert told.json()["on"] == "recorded:char-rnn"
    assert told.json()["configurations"] > 0
    assert str(RECORDING) not in told.body.decode()
    run = service.ask("POST", f"{API}/runs", "ron", body).json()["run"]
    job, _ = from_json(service.state.ledger.submission(run).request)
    assert job.on == f"recorded:{RECORDING}"


def test_a_job_file_may_be_named_and_its_mistakes_are_told_by_that_name(service):
    wrong = service.submit("ron", JOB.replace("1M", "lots"), name="../../digits.yaml")
    assert wrong.status == 422
    assert wrong.error.startswith("digits.yaml:4:")


def test_runs_are_launched_resumed_and_taken_down_as_their_state_allows(service):
    ledger = service.state.ledger
    run = service.submit("ron").json()["run"]
    assert service.ask("POST", f"{API}/runs/{run}/launch", "ron").status == 409  # it has not begun
    job, _ = from_json(ledger.submission(run).request)
    start(job, ledger, run=run).search()
    assert service.ask("POST", f"{API}/runs/{run}/launch", "ron").status == 202
    assert service.executor.asked[-1] == ("send", run, "True")
    assert service.ask("POST", f"{API}/runs/{run}/resume", "ron", {"launch": False}).status == 202
    assert service.executor.asked[-1] == ("send", run, "False")
    assert service.ask("POST", f"{API}/runs/{run}/down", "ada").status == 202
    assert service.executor.asked[-1] == ("down", run)
    done = [each.action for each in service.state.audit.entries(4)]
    assert done == ["down", "resume", "launch", "launch"]
    with ledger.hold(run):
        assert service.ask("POST", f"{API}/runs/{run}/launch", "ron").status == 409
        assert service.ask("POST", f"{API}/runs/{run}/stop", "ron").status == 202
        assert service.executor.asked[-1] == ("stop", run)


SERVICE = Settings("service", Path("/nowhere"), recordings={"a": Path("/r/a")})


@given(st.text(max_size=40) | st.sampled_from(["recorded:a", "recorded:/r/a", "local:x", "ray:x", "functions:aws"]))
def test_no_place_that_is_asked_for_brings_a_path_that_the_service_did_not_choose(on):
    try:
        found = internal_place(on, SERVICE)
    except UserError:
        return
    kind, _, rest = found.partition(":")
    assert found == "recorded:/r/a" if kind == "recorded" else "/" not in rest
    assert "/" not in public_place(found, SERVICE)


def test_in_a_service_a_job_lives_in_an_empty_folder_of_its_driver_and_for_one_person_where_they_are(home, tmp_path):
    job = Job("j", 1.0, folder="/etc", task={"workdir": "/", "file_mounts": {"/x": "s3://b"}})
    settings = replace(SERVICE, home=tmp_path)
    with closing(open_database(None)) as database:
        folder = Path(with_local_files(confined(job, settings), database).folder)
    assert folder.is_relative_to(home)
    assert list(folder.iterdir()) == []
    assert confined(job, replace(settings, mode="ui")).folder == str(Path.cwd())
    with pytest.raises(UserError, match="workdir '/'"):
        confined(replace(job, on="local"), settings)
    elsewhere = {"file_mounts": {"/d": {"name": "b"}, "/x": "s3://b", "/y": "https://a.blob.core.windows.net/b"}}
    assert confined(replace(job, on="local", task=elsewhere), settings).task == elsewhere


def burn() -> str:
    while True:
        pass


def sleep_on() -> str:
    threading.Event().wait()
    return ""


def hoard() -> str:
    kept = []
    while True:
        kept.append(bytes(1 << 20))


def write_down(path: str) -> str:
    with open(path, "w") as file:
        file.write("here")
    return "written"


def look_around() -> str:
    return json.dumps(dict(os.environ))


def fall() -> str:
    os.abort()


@pytest.mark.parametrize(
    ("work", "limits"),
    [(burn, Limits(64, 1, 300.0)), (sleep_on, Limits(64, 20, 0.3)), (hoard, Limits(64, 20, 300.0)), (fall, TEXT)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_child_that_takes_too_much_is_ended_and_what_it_read_refused(work, limits):
    with pytest.raises(UserError, match="crashes the reader"):
        in_child_process("it", limits, work)


def test_a_child_writes_no_files_and_knows_no_secrets(tmp_path, monkeypatch):
    patient = replace(TEXT, wall_s=300.0)
    with pytest.raises(UserError, match=r"crashes the reader|cannot be read"):
        in_child_process("it", patient, write_down, str(tmp_path / "new"))
    assert not (tmp_path / "new").exists() or (tmp_path / "new").read_text() == ""  # not a byte
    monkeypatch.setenv("MLCD_DATABASE_URL", "postgresql://u:secret@h/d")
    assert "secret" not in in_child_process("it", patient, look_around)


@pytest.mark.parametrize("name", [" ", "\\u3000", "x" * 201, "a\\tb"])
def test_a_job_whose_name_cannot_be_shown_is_refused(service, name):
    refused = service.submit("ron", JOB.replace("name: digits", f'name: "{name}"'))
    assert refused.status == 422, refused.body
    assert "name" in refused.error


def test_what_is_billed_in_real_dollars_begins_only_with_a_yes_to_its_price(tmp_path):
    with staged(tmp_path / "home", places=("simulated", "skypilot")) as stage:
        refused = submit(stage, "ron", "20", "skypilot:aws")
        assert refused.status == 409
        assert refused.json()["asks"] == (
            "It rents on skypilot:aws for real money, up to $20.00, the budget, for probes and the final run together."
            "\nNot counted: traffic out of a region, unless the job file says how much (egress)."
        )
        assert refused.error.endswith('To agree, send it again with "yes": true')
        assert stage.written == (0, [], [])
        agreed = stage.submit("ron", options={"on": "skypilot:aws", "budget": "20"}, yes=True)
        assert agreed.status == 202
        assert submit(stage, "ron", "20", "simulated").status == 202  # nothing to agree to
