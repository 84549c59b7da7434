"""What a named token may, over every route there is: a read token changes nothing, a run token runs and no more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from stage import API, JOB, Stage, staged

from mlcd.core.database.schema import METADATA
from mlcd.core.runs.run import start
from mlcd.service.team.members import Scope
from mlcd.service.team.tokens import NamedTokens
from mlcd.service.web.app import api_document
from mlcd.service.workers.submissions import from_json

ROUTES = [(method.upper(), path) for path, methods in api_document()["paths"].items() for method in methods]
CHANGING = [each for each in ROUTES if each[0] != "GET"]
STREAMS = (f"{API}/events", f"{API}/runs/{{run}}/events")
BODIES: dict[str, Any] = {
    "/runs": {"kind": "train", "job": JOB},
    "/checks": {"kind": "train", "job": JOB},
    "/runs/{run}/labels": {"project": "theirs"},
    "/checks/file": {"job": JOB},
    "/members": {"name": "eve", "role": "admin"},
    "/members/{name}": {"role": "admin"},
    "/teams/{team}": {"budget_usd": 1.0},
    "/news": {"kind": "json", "address": "https://evil.example/", "own": False},
    "/members/{name}/account": {"issuer": "https://sso.example.org", "subject": "eve"},
    "/tokens": {"name": "more", "scope": "run", "days": None},
}
"""What each takes, so that nothing but the token is in the way; the others take nothing."""
UNWATCHED = ("audit", "alembic_version")
OF_RUNS = ("entries", "runs", "labels")


@pytest.fixture
def stage(tmp_path):
    """With a decided run of ron's, one that waits, and tokens of everybody."""
    with staged(tmp_path / "home") as stage:
        run = stage.submit("ron").json()["run"]
        stage.submit("ron")
        job, _ = from_json(stage.state.ledger.submission(run).request)
        start(job, stage.state.ledger, run=run).search()
        stage.look()
        named = NamedTokens(stage.state.database, stage.state.members.now)
        for who in ("vera", "ron", "ada"):
            for scope in (Scope.READ, Scope.RUN):
                _, stage.tokens[f"{who}/{scope}"] = named.add(who, f"{scope}-token", scope, 30)
        yield stage


def kept(stage: Stage, without: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """All that the database has, but for the audit log and the last use of tokens."""
    tables = [each for each in METADATA.sorted_tables if each.name not in (*UNWATCHED, *without)]
    with stage.state.database.read() as connection:
        return {
            table.name: sorted(map(str, connection.execute(table.select().with_only_columns(*columns))))
            for table in tables
            if (columns := [column for column in table.columns if column.name != "used_at"])
        }


def send(stage: Stage, method: str, path: str, who: str) -> int:
    run = stage.state.ledger.runs()[0]
    where = path.replace("{run}", run).replace("{name}", "ron").replace("{team}", "lab")
    if path == f"{API}/tokens/{{name}}/rotate" or (path == f"{API}/tokens/{{name}}" and method == "DELETE"):
        where = path.replace("{name}", "read-token")
    if path.endswith("/uploads"):
        return stage.ask(method, where, who, raw=b"x", headers={"content-type": "application/octet-stream"}).status
    body = BODIES.get(path.removeprefix(API)) if method != "DELETE" else None
    return stage.ask(method, where, who, body).status


@pytest.mark.parametrize("who", ["vera", "ron", "ada"])
def test_a_read_token_of_nobody_changes_anything_by_any_route(who, stage):
    before, asked = kept(stage), list(stage.executor.asked)
    signs_in = [("POST", f"{API}{path}") for path in ("/session", "/sign-in", "/sign-in/callback")]
    for method, path in CHANGING:
        if (method, path) not in signs_in:  # the last two take no token, and there is no provider here
            assert send(stage, method, path, f"{who}/read") == 403, f"{method} {path}"
    body = {"token": stage.tokens[f"{who}/read"]}
    assert stage.ask("POST", f"{API}/session", body=body, headers={"x-mlcd": "1"}).status == 403
    for method, path in ROUTES:
        if method == "GET" and path not in STREAMS:
            assert send(stage, method, path, f"{who}/read") < 500
    assert kept(stage) == before
    assert stage.executor.asked == asked
    assert send(stage, "GET", f"{API}/runs", f"{who}/read") == 200


@pytest.mark.parametrize("who", ["vera", "ron", "ada"])
def test_a_run_token_changes_nothing_but_runs(who, stage):
    before = kept(stage, OF_RUNS)
    for method, path in ROUTES:
        if path not in STREAMS and "/uploads" not in path:
            send(stage, method, path, f"{who}/run")
    assert kept(stage, OF_RUNS) == before
    body = {"token": stage.tokens[f"{who}/run"]}
    assert stage.ask("POST", f"{API}/session", body=body, headers={"x-mlcd": "1"}).status == 403


def test_a_run_token_runs_what_its_member_may_and_is_no_admin(stage):
    assert stage.submit("ron/run").status == 202
    assert stage.submit("vera/run").status == 403
    run = stage.state.ledger.runs()[0]
    assert stage.ask("POST", f"{API}/runs/{run}/launch", "ada/run").status == 403  # ron's: ada may, her token may not
    assert stage.ask("POST", f"{API}/runs/{run}/launch", "ron/run").status == 202
    for path in ("/members", "/audit", "/teams", "/audit/export"):
        told = stage.ask("GET", API + path, "ada/run")
        assert told.status == 403
        assert told.error == "token 'run-token' of ada may run; this needs an admin"
    assert stage.ask("GET", f"{API}/me", "ada/run").json()["scope"] == "run"


def test_members_make_rotate_and_revoke_their_own_tokens_and_see_their_last_use(stage):
    made = stage.ask("POST", f"{API}/tokens", "rita", {"name": "ci", "scope": "run"})
    assert made.status == 201
    stage.tokens["ci"] = made.json()["token"]
    assert stage.submit("ci").status == 202
    (listed,) = stage.ask("GET", f"{API}/tokens", "rita").json()["tokens"]
    assert (listed["name"], listed["scope"], listed["expired"]) == ("ci", "run", False)
    assert listed["used_at"] is not None
    assert made.json()["token"] not in str(listed)
    rotated = stage.ask("POST", f"{API}/tokens/ci/rotate", "rita").json()["token"]
    assert stage.submit("ci").status == 401
    stage.tokens["ci"] = rotated
    assert stage.submit("ci").status == 202
    assert stage.ask("DELETE", f"{API}/tokens/ci", "rita").status == 204
    assert stage.submit("ci").status == 401
    assert stage.ask("DELETE", f"{API}/tokens/ci", "rita").status == 404
    done = [each.action for each in stage.state.audit.entries() if each.who == "rita" and "token" in each.action]
    assert done == ["revoke token", "revoke token", "rotate token", "make token"]
    assert "mlcd_" not in str(stage.state.audit.entries())


def test_a_token_that_has_ended_is_a_wrong_one(stage):
    assert stage.ask("GET", f"{API}/me", "ron/read").status == 200
    stage.later.append(timedelta(days=30))
    assert stage.ask("GET", f"{API}/me", "ron/read").status == 401
    assert {each["expired"] for each in stage.ask("GET", f"{API}/tokens", "ron").json()["tokens"]} == {True}


def test_a_member_renews_the_token_that_an_admin_gave_them(stage):
    cookie, old = stage.sign_in("ron"), stage.tokens["ron"]
    stage.tokens["ron"] = stage.ask("POST", f"{API}/me/token", "ron").json()["token"]
    assert stage.ask("GET", f"{API}/me", "ron").status == 200
    assert stage.ask("GET", f"{API}/me", headers={"authorization": f"Bearer {old}"}).status == 401
    assert stage.ask("GET", f"{API}/me", headers={"cookie": cookie}).status == 401
    assert stage.ask("GET", f"{API}/me", "ron/run").status == 200  # what programs use goes on


def test_a_session_makes_tokens_as_its_member_does(stage):
    sent = {"cookie": stage.sign_in("vera"), "x-mlcd": "1"}
    told = stage.ask("POST", f"{API}/tokens", body={"name": "ci", "scope": "read", "days": None}, headers=sent)
    assert (told.status, told.json()["expires_at"]) == (201, None)


def test_one_person_has_no_tokens(tmp_path):
    with staged(tmp_path / "home", mode="ui") as alone:
        assert alone.ask("GET", f"{API}/tokens").status == 409
        assert alone.ask("POST", f"{API}/tokens", body={"name": "ci"}).status == 409
