"""What an editor of job files asks of a service: the schema, and all mistakes while a file is typed."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from stage import API, JOB, staged

from mlcd.planners.jobfile.schema import job_schema
from mlcd.service.web.state import Limits


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path / "home") as stage:
        yield stage


def test_all_mistakes_are_told_with_their_places(stage):
    text = "naem: x\nmlcd:\n  work: many\n  bugdet: 5\n"
    told = stage.ask("POST", f"{API}/checks/file", "ron", {"job": text})
    assert told.status == 200
    assert told.json() == {
        "mistakes": [
            {"line": 1, "column": 1, "key": "naem", "message": "unknown key 'naem': did you mean 'name'?",
             "instead": "name"},
            {"line": 3, "column": 3, "key": "mlcd.work",
             "message": "work 'many': expected a positive number, such as 60M, 1.2B or 50000", "instead": None},
            {"line": 4, "column": 3, "key": "mlcd.bugdet", "message": "unknown key 'bugdet': did you mean 'budget'?",
             "instead": "budget"},
        ]
    }  # fmt: skip
    assert stage.ask("POST", f"{API}/checks/file", "ron", {"job": JOB}).json() == {"mistakes": []}


def test_a_file_of_mistakes_and_long_words_gets_a_short_answer(stage):
    told = stage.ask("POST", f"{API}/checks/file", "ron", {"job": "".join(f"k{i}: 1\n" for i in range(1_000))})
    assert len(told.json()["mistakes"]) == 100
    told = stage.ask("POST", f"{API}/checks/file", "ron", {"job": f"mlcd: {{work: {'x' * 30_000}}}"})
    assert len(told.json()["mistakes"][0]["message"]) == 400


def test_no_file_of_the_service_is_read(stage):
    text = "mlcd: {work: {samples: 1}, model: {config: /etc/hostname}}\n"
    (only,) = stage.ask("POST", f"{API}/checks/file", "ron", {"job": text}).json()["mistakes"]
    assert "a service reads no file of yours" in only["message"]


def test_the_schema_names_the_places_and_types_of_the_service(stage):
    schema = stage.ask("GET", f"{API}/schemas/job", "vera").json()
    Draft202012Validator.check_schema(schema)
    assert schema["$defs"]["Block"]["properties"]["on"]["examples"] == [
        *("simulated", "local", "functions", "skypilot")
    ]
    assert "g5.xlarge" in schema["$defs"]["SearchBlock"]["properties"]["instances"]["examples"]
    assert schema["$defs"].keys() == job_schema()["$defs"].keys()


def test_who_types_fast_can_still_submit(tmp_path):
    with staged(tmp_path / "home", limits=Limits(submissions_per_minute=2)) as stage:
        asked = [stage.ask("POST", f"{API}/checks/file", "ron", {"job": JOB}) for _ in range(3)]
        assert [each.status for each in asked] == [200, 200, 429]
        assert int(asked[-1].headers["retry-after"]) >= 1
        assert stage.ask("POST", f"{API}/checks", "ron", {"kind": "train", "job": JOB}).status == 200


def test_a_viewer_has_no_files_checked(stage):
    assert stage.ask("POST", f"{API}/checks/file", "vera", {"job": JOB}).status == 403
