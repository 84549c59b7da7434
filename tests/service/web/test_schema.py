"""The API keeps to its own OpenAPI document, whoever asks and whatever they send: schemathesis, in this process."""

from __future__ import annotations

from datetime import timedelta

import pytest
import requests
import urllib3
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mlcd_fixtures.examples import at_night_except
from stage import API, staged

from mlcd.core.runs.run import start
from mlcd.service.workers.submissions import from_json

STREAMS = (f"{API}/events", f"{API}/runs/{{run}}/events")
"""They have no end to wait for; tests/service/web/test_feed.py watches them."""
BODIED = ("post", "put", "patch")
BYTES = {"content-type": "application/octet-stream"}
FEW = settings(
    max_examples=3,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """With a run that is decided, and one that waits."""
    with staged(tmp_path_factory.mktemp("home")) as stage:
        decided, _ = (stage.submit("ron").json()["run"] for _ in range(2))
        job, _ = from_json(stage.state.ledger.submission(decided).request)
        start(job, stage.state.ledger, run=decided).search()
        yield stage


@pytest.fixture(scope="module")
def operations(stage):
    import schemathesis  # here and below: a second of CPU in each process that collects the tests

    schema = schemathesis.openapi.from_dict(stage.ask("GET", f"{API}/openapi.json", "vera").json())
    found = [each.ok() for each in schema.get_all_operations()]
    assert len(found) > 30
    return [each for each in found if each.path not in STREAMS]


@pytest.fixture(scope="module")
def checks():
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    return [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]


def has_anything_to_get_wrong(operation):
    """A parameter or a body whose schema does not allow everything."""
    return bool(list(operation.query) or [each for each in operation.body if each.media_type == "application/json"])


def sent(stage, case, headers):
    """The answer to a case, by way of our own transport: schemathesis' own starts and ends the app for each."""
    asked = requests.Request(**case.as_transport_kwargs(base_url="http://localhost", headers=headers)).prepare()
    body = asked.body if asked.body is not None else b""
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    told = stage.ask(asked.method, asked.path_url, raw=raw, headers=dict(asked.headers))
    answer = requests.Response()
    answer.status_code, answer._content, answer.request = told.status, told.body, asked
    answer.headers.update(told.headers)
    answer.url, answer.encoding, answer.elapsed = asked.url, "utf-8", timedelta()
    answer.raw = urllib3.HTTPResponse(body=told.body, status=told.status, headers=told.headers, version=11)
    return answer


WHO = at_night_except(("ada", None), ("vera", "ron", "ada", None))
"""At each change an admin, who gets everywhere, and nobody; what the others may do is in test_identity.py."""


@pytest.mark.parametrize("who", WHO)
def test_no_answer_is_a_fault_and_each_is_as_the_document_says(who, stage, operations, checks):
    from schemathesis import GenerationMode

    headers = {"Authorization": f"Bearer {stage.tokens[who]}"} if who is not None else {}
    names = {"run": stage.state.ledger.runs() + [each.run for each in stage.state.ledger.waiting()], "name": ["eve"]}
    statuses = set()
    for operation, mode in ((each, mode) for each in operations for mode in GenerationMode):
        if mode is GenerationMode.NEGATIVE and not has_anything_to_get_wrong(operation):
            continue

        @FEW
        @given(operation.as_strategy(generation_mode=mode), st.data())
        def asked(case, data):
            for parameter in set(case.path_parameters or {}) & set(names):
                if data.draw(st.booleans()):
                    case.path_parameters[parameter] = data.draw(st.sampled_from(names[parameter]))
            answer = sent(stage, case, headers)
            case.validate_response(answer, checks=checks)
            statuses.add(answer.status_code)

        asked()
    assert (statuses >= {200, 400, 404}) if who else (statuses >= {401})  # something was reached


def test_each_operation_documents_what_it_may_be_refused_with(stage):
    document = stage.ask("GET", f"{API}/openapi.json", "vera").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            told = set(operation["responses"])
            assert path == f"{API}/health" or {"401", "403", "429", "503"} <= told, f"{method} {path}"
            if method != "get":
                assert any(each.startswith("2") for each in told), f"{method} {path}"
            if "requestBody" in operation:
                assert {"413", "415"} <= told, f"{method} {path}"


def test_without_a_token_nothing_is_told_whatever_is_asked(stage):
    """Not even whether a run is there: health, the document and signing in are all there is."""
    document = stage.ask("GET", f"{API}/openapi.json", "vera").json()
    signs_in = {("post", f"{API}{path}") for path in ("/session", "/sign-in", "/sign-in/callback")}
    open_to_all = {("get", f"{API}/health"), *signs_in}
    for path, methods in document["paths"].items():
        for method in methods:
            if (method, path) in open_to_all:
                continue
            for name in ("digits-1", "nothing"):
                where = path.replace("{run}", name).replace("{name}", name).replace("{team}", name)
                told = stage.ask(method.upper(), where, body={} if method in BODIED else None, headers={"x-mlcd": "1"})
                if path.endswith("/uploads"):
                    told = stage.ask("POST", where, raw=b"x", headers=BYTES)
                assert told.status == 401, f"{method} {where}: {told.body[:200]}"
                assert "digits-1" not in told.error
