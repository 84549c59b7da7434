"""The app: what its document says, how it refuses, and the pages around the API."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from stage import API, Stage, staged
from starlette.requests import Request

from mlcd.core.errors import BackendError, LedgerCorrupt, LedgerError, MlcdError, UnknownName, UserError, WrongState
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.serve.space import parse_knobs
from mlcd.service.web.app import create_app
from mlcd.service.web.errors import Refusal, refusal
from mlcd.service.web.pages import Built, page, read

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "api.md"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("app"), mode="ui") as stage:
        yield stage


def test_every_route_has_a_tag_a_summary_and_describes_what_it_answers(stage: Stage) -> None:
    for path, methods in stage.app.openapi()["paths"].items():
        for method, told in methods.items():
            where = f"{method} {path}"
            assert path.startswith(f"{API}/"), where
            assert told["tags"], where
            assert told["summary"], where
            assert told["description"], where
            for status, answer in told["responses"].items():
                assert answer["description"], (where, status)
                problem = answer.get("content", {}).get("application/json", {}).get("schema", {})
                if status.startswith(("4", "5")):
                    assert problem["$ref"].endswith("/Problem"), (where, status)


def test_every_route_is_in_the_reference(stage: Stage) -> None:
    told = DOCUMENT.read_text(encoding="utf-8")
    for path, methods in stage.app.openapi()["paths"].items():
        short = path.removeprefix(API)
        for method in methods:
            alone, of_run = f"`{method.upper()} {short}`", f"`/{short.rpartition('/')[2]}`"
            assert alone in told or of_run in told, f"{method} {path}"


def test_the_document_needs_no_other_site(stage: Stage) -> None:
    assert stage.ask("GET", f"{API}/openapi.json").status == 200
    for path in ("/docs", "/redoc"):
        assert b"cdn" not in stage.ask("GET", path).body.lower()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UserError("a"), 422),
        (UnknownName("method", "a", []), 422),
        (WrongState("a"), 409),
        (LedgerError("a", "where it is"), 503),
        (LedgerCorrupt("a", "where it is"), 503),
        (BackendError("a"), 422),
        (Refusal(418, "a"), 418),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, MlcdError) else "",
)
def test_each_deliberate_error_has_its_status(error: MlcdError, status: int) -> None:
    found = refusal(error)
    assert (found.status, str(found)) == (status, str(error).replace("where it is", "the ledger"))


def test_what_a_budget_leaves_stands_beside_the_refusal() -> None:
    error = UserError("too dear")
    error.left_usd = 3.0  # type: ignore[attr-defined]
    assert (refusal(error).status, refusal(error).extra) == (409, {"left_usd": 3.0})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api", 404),
        ("DELETE", "/api/v1/runs", 405),
        ("GET", "/api/v1/checks", 405),
        ("GET", "/api/v1/runs?limit=0", 400),
        ("GET", "/api/v1/runs?order=best", 400),
        ("GET", "/api/v1/runs?status=lost", 400),
        ("GET", "/api/v1/offers?gpu=abacus", 422),
        ("GET", "/assets/nothing.js", 404),
        ("DELETE", "/runs", 405),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(stage: Stage, method: str, path: str, status: int) -> None:
    told = stage.ask(method, path)
    assert told.status == status
    assert set(told.json()) == {"error"}
    assert re.fullmatch(r"[^\n]+", told.error)
    if status == 405:
        assert method not in told.headers["allow"].split(", ")


def test_a_path_lists_all_its_methods(stage: Stage) -> None:
    assert stage.ask("DELETE", f"{API}/runs").headers["allow"] == "GET, POST"


def test_a_long_name_that_was_sent_is_not_repeated_in_full(stage: Stage) -> None:
    assert len(stage.ask("GET", f"{API}/runs/x/what-if?{'a' * 5_000}=1").error) <= 300


def test_a_fault_tells_nothing_of_itself_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(tmp_path, mode="ui") as stage:
        monkeypatch.setattr(type(stage.state.feed), "summaries", lambda feed: 1 / 0)
        with caplog.at_level(logging.ERROR), pytest.raises(ZeroDivisionError):  # the server above logs it once more
            stage.ask("GET", f"{API}/runs")
        assert "division by zero" in caplog.text


def test_health_says_so_when_the_database_is_away(stage: Stage) -> None:
    assert stage.ask("GET", f"{API}/health").json()["ok"]
    stage.state.feed.read_error = "the database cannot be reached"
    try:
        told = stage.ask("GET", f"{API}/health")
    finally:
        stage.state.feed.read_error = ""
    assert (told.status, told.error) == (503, "the database cannot be reached")


def asked(path: str, method: str = "GET", **headers: str) -> Request:
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "path": path, "query_string": b"", "headers": told})


def test_a_file_is_served_as_it_is_and_every_other_path_is_the_page(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<p>page")
    (tmp_path / "assets" / "main.js").write_text("go()")
    (tmp_path.parent / "secret").write_text("secret")
    built = read(tmp_path)
    assert set(built) == {"index.html", "assets/main.js"}
    script = page(built, asked("/assets/main.js"))
    assert (script.body, script.media_type) == (b"go()", "text/javascript")
    assert page(built, asked("/assets/main.js", if_none_match=script.headers["etag"])).status_code == 304
    for path in ("/", "/runs/demo-1", "/../secret", "/%2e%2e/secret", "/index.html/../../secret"):
        assert page(built, asked(path)).body == b"<p>page"


def test_without_the_pages_one_line_says_how_to_build_them(tmp_path: Path) -> None:
    empty: dict[str, Built] = read(tmp_path / "static")
    assert b"npm run build" in page(empty, asked("/")).body


def test_every_example_can_be_submitted_as_it_is(stage: Stage) -> None:
    examples = stage.ask("GET", f"{API}/examples").json()["examples"]
    assert {each["kind"] for each in examples} == {"train", "scale", "tune", "serve"}
    for each in examples:
        if each["kind"] == "serve":
            assert parse_knobs(each["text"], Path("knobs.yaml")).table
        else:
            assert job_from_text(each["kind"], each["text"], {}).goal.limited


def test_offers_are_filtered_and_counted(stage: Stage) -> None:
    everything = stage.ask("GET", f"{API}/offers?limit=5000").json()
    assert everything["total"] == len(everything["offers"])
    some = stage.ask("GET", f"{API}/offers?gpu=A100&max_price=40&limit=2").json()
    assert len(some["offers"]) == 2 < some["total"] < everything["total"]
    assert all(row["accelerator"].startswith("A100") and row["usd_per_hour"] <= 40 for row in some["offers"])
    named = stage.ask("GET", f"{API}/offers?text=G4DN").json()["offers"]
    assert named
    assert all("g4dn" in row["instance_type"] for row in named)


def test_models_and_knowledge_are_told(stage: Stage) -> None:
    assert stage.ask("GET", f"{API}/models").json() == {"models": [], "unreadable": []}
    bases = stage.ask("GET", f"{API}/knowledge").json()["knowledge"]
    assert {base["name"] for base in bases} == {"cpu", "h200"}
    assert all(model["cells"] for base in bases for model in base["models"])


def test_two_apps_stand_side_by_side(stage: Stage) -> None:
    assert create_app(stage.state).openapi() == stage.app.openapi()
