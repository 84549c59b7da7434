"""What operators watch a service by: /metrics, /healthz, /readyz, and a log line for each request."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path

import pytest
from stage import API, Stage, staged

pytest.importorskip("prometheus_client", reason="pip install 'mlcd[service]'")

from prometheus_client.parser import text_string_to_metric_families

from mlcd.core.errors import LedgerUnreachable
from mlcd.core.ledger import Settled
from mlcd.core.runs.run import start
from mlcd.service.web.feed import Feed
from mlcd.service.web.monitoring.metrics import Metrics
from mlcd.service.web.monitoring.request_log import LOG, OTHER
from mlcd.service.workers.log import JsonLines
from mlcd.service.workers.submissions import from_json

WRONG = "mlcd_" + "A" * 43


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path / "home") as stage:
        yield stage


class Kept(logging.Handler):
    """Log lines as they would be written, read again."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.raw: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.raw.append(self.format(record))

    @property
    def lines(self) -> list[dict]:
        return [json.loads(each) for each in self.raw]


@pytest.fixture
def log():
    kept, before = Kept(), LOG.level
    LOG.addHandler(kept)
    LOG.setLevel(logging.INFO)
    yield kept
    LOG.removeHandler(kept)
    LOG.setLevel(before)


def scraped(stage: Stage, who: str = "vera") -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """The samples of the page by their names and labels, as Prometheus' own parser reads them."""
    told = stage.ask("GET", "/metrics", who)
    assert told.status == 200
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(told.body.decode()):
        assert family.documentation, family.name
        for each in family.samples:
            samples.setdefault(each.name, {})[tuple(sorted(each.labels.items()))] = each.value
    return samples


def searched(stage: Stage, who: str = "ron") -> str:
    run = stage.submit(who).json()["run"]
    job, _ = from_json(stage.state.ledger.submission(run).request)
    start(job, stage.state.ledger, run=run).search()
    stage.look()
    return run


def test_the_metrics_count_runs_money_probes_workers_and_what_waits(stage):
    stage.state.members.change("ron", team="vision")
    run = searched(stage)
    waiting = stage.submit("rita").json()["run"]
    stage.look()
    probes = [each.entry for each in stage.state.ledger.lines(run) if isinstance(each.entry, Settled)]
    samples = scraped(stage)
    runs = {dict(labels)["status"]: value for labels, value in samples["mlcd_runs"].items()}
    assert (runs["decided"], runs["queued"], runs["failed"]) == (1, 1, 0)
    spent = samples["mlcd_spent_usd_total"][(("member", "ron"), ("provenance", "simulated"), ("team", "vision"))]
    assert spent == pytest.approx(sum(each.measurement.usd for each in probes))
    counts = samples["mlcd_probe_duration_seconds_count"]
    assert {dict(labels)["provenance"] for labels in counts} == {"simulated"}
    assert sum(counts.values()) == len(probes) > 1
    assert samples["mlcd_workers"] == {(("state", "alive"),): 1, (("state", "silent"),): 0}
    assert samples["mlcd_queue_depth"][()] == len(stage.executor.asked)
    assert waiting not in stage.ask("GET", "/metrics", "vera").body.decode()


def test_a_restart_counts_the_probes_of_the_ledger_again_and_none_twice(stage):
    searched(stage)
    counts = scraped(stage)["mlcd_probe_duration_seconds_count"]
    stage.look()
    assert scraped(stage)["mlcd_probe_duration_seconds_count"] == counts
    metrics, feed = Metrics(), Feed(stage.state.ledger)
    feed.listeners.append(metrics.on_entry)
    asyncio.run(feed.catch_up())
    feed.close()
    page = metrics.page(feed.summaries(), stage.executor.roster()).decode()
    families = {each.name: each for each in text_string_to_metric_families(page)}
    samples = families["mlcd_probe_duration_seconds"].samples
    assert {tuple(sorted(s.labels.items())): s.value for s in samples if s.name.endswith("_count")} == counts


def test_the_metrics_need_a_token_and_any_members_will_do(stage):
    assert stage.ask("GET", "/metrics").status == 401
    assert stage.ask("GET", "/metrics", headers={"authorization": f"Bearer {WRONG}"}).status == 401
    assert stage.ask("GET", "/metrics", "vera").status == 200


def test_requests_are_timed_by_the_template_of_their_route_and_nothing_that_is_sent_becomes_a_label(stage):
    for i in range(30):
        stage.ask("GET", f"{API}/runs/nothing-{i}", "vera")
        stage.ask("GET", f"{API}/made-up/{i}", "vera")
        stage.ask("GET", f"/page/{i}")
        stage.ask(f"MADEUP{i}", f"{API}/runs", "vera")
    counts = scraped(stage)["mlcd_http_request_duration_seconds_count"]
    assert counts[(("method", "GET"), ("route", f"{API}/runs/{{run}}"), ("status", "404"))] == 30
    assert counts[(("method", "GET"), ("route", OTHER), ("status", "404"))] == 30
    assert len(counts) < 10


def test_one_persons_pages_have_no_metrics(tmp_path):
    with staged(tmp_path / "home", mode="ui") as alone:
        assert alone.ask("GET", "/metrics").status == 404
        assert alone.ask("GET", "/readyz").json()["ready"] is True


def test_a_process_that_answers_is_healthy_and_one_with_a_database_and_a_worker_is_ready(stage):
    assert stage.ask("GET", "/healthz").json() == {"ok": True}
    told = stage.ask("GET", "/readyz")
    assert (told.status, told.json()) == (200, {"ready": True, "checks": {"database": "ok", "workers": "ok"}})


def test_a_service_without_a_live_worker_is_not_ready_and_says_why(stage):
    stage.executor.workers = 0
    told = stage.ask("GET", "/readyz")
    assert told.status == 503
    assert told.json()["ready"] is False
    assert "no worker is running" in told.json()["checks"]["workers"]
    assert stage.ask("GET", "/healthz").status == 200


def test_a_service_whose_database_is_away_is_not_ready_and_does_not_say_where_that_is(stage):
    def away() -> int:
        raise LedgerUnreachable("cannot be reached", "postgresql://mlcd@db.example/mlcd")

    stage.executor.alive = away
    told = stage.ask("GET", "/readyz")
    assert told.status == 503
    assert "cannot be reached" in told.json()["checks"]["database"]
    assert b"db.example" not in told.body


@pytest.mark.parametrize("path", ["/api/v2/runs", "/api", "/API/v1/runs", "/metrics/x", "/healthz/x", "/readyz/"])
def test_an_unknown_path_that_looks_like_the_api_is_a_404_and_no_page(path, stage):
    told = stage.ask("GET", path, "vera")
    assert (told.status, told.headers["content-type"]) == (404, "application/json")
    assert told.error


def test_a_wrong_token_is_in_the_log_and_its_letters_are_not(stage, log):
    stage.ask("GET", f"{API}/runs/{WRONG}?token={WRONG}", headers={"authorization": f"Bearer {WRONG}"})
    (line,) = log.lines
    assert (line["level"], line["status"], line["member"], line["address"]) == ("warning", 401, None, "127.0.0.1")
    assert line["route"] == f"{API}/runs/{{run}}"
    assert "the token or session is wrong" in line["because"]
    assert WRONG not in log.raw[0]
    assert WRONG[5:] not in log.raw[0]


def test_every_refusal_is_in_the_log_with_who_and_why_and_every_other_request_is_news(stage, log):
    stage.submit("vera")
    stage.ask("GET", f"{API}/me", "ron", host="evil.example")
    stage.ask("POST", f"{API}/runs", "ron", body={"kind": 1})
    stage.ask("GET", f"{API}/me", "ron")
    told = [(each["level"], each["status"], each["member"]) for each in log.lines]
    assert told[0] == ("warning", 403, "vera")
    assert ("warning", 400, "ron") in told
    assert told[-1] == ("info", 200, "ron")
    assert "vera is a viewer" in log.lines[0]["because"]
    assert {"time", "logger", "message", "request", "duration_ms", "method", "path"} <= set(log.lines[0])


def test_probes_of_a_load_balancer_are_logged_only_if_something_is_wrong(stage, log):
    for path in ("/healthz", "/readyz"):
        stage.ask("GET", path)
    stage.ask("GET", "/metrics", "vera")
    assert log.lines == []
    stage.executor.workers = 0
    stage.ask("GET", "/readyz")
    assert [(each["level"], each["status"]) for each in log.lines] == [("error", 503)]


@pytest.mark.parametrize("sent, kept", [("abc-123", True), ("x" * 65, False), ("a b", False), ('"},{"', False)])
def test_a_request_keeps_the_number_that_a_proxy_gave_it_if_that_is_one(sent, kept, stage, log):
    told = stage.ask("GET", f"{API}/me", "ron", headers={"x-request-id": sent, "authorization": _bearer(stage)})
    assert (told.headers["x-request-id"] == sent) is kept
    assert log.lines[0]["request"] == told.headers["x-request-id"]


def test_a_stream_of_events_is_in_the_log_when_it_begins(stage, log):
    run = stage.submit("ron").json()["run"]
    stage.look()
    with pytest.raises(TimeoutError):
        asyncio.run_coroutine_threadsafe(_watched(stage, run), stage.loop).result(60)
    assert [each["route"] for each in log.lines][-1] == f"{API}/runs/{{run}}/events"


async def _watched(stage: Stage, run: str) -> None:
    """Somebody who reads for as long as it takes until the log has it."""
    begun, body = asyncio.Event(), [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict:
        if not body:
            await asyncio.Event().wait()
        return body.pop()

    async def send(message: dict) -> None:
        if message["type"] == "http.response.start":
            begun.set()

    headers = [(b"host", b"localhost"), (b"authorization", _bearer(stage).encode())]
    path = f"{API}/runs/{run}/events"
    where = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http"}
    about = {"type": "http", "method": "GET", "http_version": "1.1", "headers": headers, "state": {}}
    ends = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8421), "asgi": {"version": "3.0"}}
    watching = asyncio.ensure_future(stage.app({**about, **where, **ends}, receive, send))
    await begun.wait()
    await asyncio.wait_for(watching, 0.01)


def test_every_metric_is_in_the_documentation(stage):
    page = (Path(__file__).parents[3] / "docs" / "howto" / "service.md").read_text()
    stage.ask("GET", f"{API}/me", "ron")
    searched(stage)
    names = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in scraped(stage)}
    assert len(names) > 8
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_a_fault_is_in_the_log_as_an_error(stage, log):
    def broken() -> int:
        raise ZeroDivisionError

    stage.executor.alive = broken
    with pytest.raises(ZeroDivisionError):
        stage.ask("GET", "/readyz")
    assert (log.lines[-1]["level"], log.lines[-1]["status"]) == ("error", 500)


def _bearer(stage: Stage) -> str:
    return f"Bearer {stage.tokens['ron']}"
