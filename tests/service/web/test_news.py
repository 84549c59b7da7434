"""News of runs arrives at a receiver: at least once, in order, signed, and also after it was away for long."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from stage import API, JOB, Stage, staged

from mlcd.core.errors import UserError
from mlcd.core.ledger import Account
from mlcd.core.runs.run import start
from mlcd.service.team.hooks import Hooks, check_url
from mlcd.service.web.news import Courier, news_of
from mlcd.service.workers.submitted import from_json

pytestmark = pytest.mark.live


@dataclass
class Receiver:
    """A real one, on loopback. `answers`: what it says to the next requests; then 204."""

    answers: list[int] = field(default_factory=list)
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""
    came: threading.Event = field(default_factory=threading.Event)

    @property
    def told(self) -> list[dict]:
        return [json.loads(body) for _, body in self.heard]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.heard.append((dict(self.headers.items()), body))
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.end_headers()
            found.came.set()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}/news?key=of-the-receiver"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Post:
    """What sends the news of a stage, at a time of the test's."""

    stage: Stage
    time: datetime = datetime(2026, 11, 19, 12, tzinfo=UTC)

    @property
    def hooks(self) -> Hooks:
        return Hooks(self.stage.state.database, lambda: self.time)

    def deliver(self, after_s: float = 0.0) -> None:
        """By a courier that knows nothing of the one before, as after a restart."""
        self.time += timedelta(seconds=after_s)
        Courier(self.stage.state.ledger, self.hooks, lambda: self.time).deliver()


@pytest.fixture
def post(tmp_path):
    with staged(tmp_path / "home", news_every_s=1e6) as stage:
        yield Post(stage)


def searched(stage: Stage, who: str = "ron", job: str = JOB, launch: bool = False) -> str:
    run = stage.submit(who, job, launch=launch).json()["run"]
    read, _ = from_json(stage.state.ledger.asked(run).asked)
    start(read, stage.state.ledger, run=run).search()
    return run


def test_news_of_a_search_and_of_its_run_arrives_in_order_and_once(post, receiver):
    secret = post.hooks.add("ci", receiver.url, "json", None, None)
    first, second = searched(post.stage), searched(post.stage, job=JOB.replace("$5", "$0.000001"))
    post.deliver()
    events = [(each["run"], each["event"], each["owner"]) for each in receiver.told if each["event"] != "budget"]
    assert events == [(first, "waiting", "ron"), (second, "infeasible", "ron")]
    assert receiver.told[0]["text"].startswith(f"{first} of ron: ")
    headers, body = receiver.heard[0]
    signed = headers["X-MLCD-Timestamp"].encode() + b"." + body
    assert headers["X-MLCD-Signature"] == f"sha256={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"
    count = len(receiver.heard)
    post.deliver(after_s=60)
    assert len(receiver.heard) == count
    assert len({each["id"] for each in receiver.told}) == count


def test_what_goes_on_by_itself_waits_for_nobody(post, receiver):
    post.hooks.add("ci", receiver.url, "json", None, None)
    searched(post.stage, launch=True)
    post.deliver()
    assert "waiting" not in [each["event"] for each in receiver.told]


def test_a_receiver_that_was_away_gets_everything_when_it_is_back_and_nothing_of_it_is_lost(post, receiver):
    post.hooks.add("ci", receiver.url, "json", None, None)
    runs = [searched(post.stage) for _ in range(2)]
    receiver.answers = [500, 302]
    post.deliver()
    assert len(receiver.heard) == 1
    (hook,) = post.hooks.all()
    assert hook.trouble.endswith("answered 500")
    assert "of-the-receiver" not in hook.trouble
    post.deliver(after_s=4)  # too early
    assert len(receiver.heard) == 1
    post.deliver(after_s=1)
    assert len(receiver.heard) == 2
    post.deliver(after_s=10)
    assert [each["run"] for each in receiver.told if each["event"] == "waiting"][-2:] == runs
    (hook,) = post.hooks.all()
    assert (hook.trouble, hook.tries, hook.next_at) == ("", 0, None)


def test_one_receiver_that_is_away_keeps_nothing_from_another(post, receiver):
    post.hooks.add("away", "http://127.0.0.1:1/", "json", None, None)
    post.hooks.add("here", receiver.url, "json", None, None)
    run = searched(post.stage)
    post.deliver()
    assert receiver.told[-1]["run"] == run
    away, here = post.hooks.all()
    assert "cannot be reached" in away.trouble
    assert here.trouble == ""


def test_each_hears_of_the_runs_that_they_asked_for_and_of_none_from_before(post, receiver):
    searched(post.stage)
    post.hooks.add("of-rita", receiver.url, "json", "rita", None)
    searched(post.stage, "ron")
    run = searched(post.stage, "rita")
    post.deliver()
    assert {each["run"] for each in receiver.told} == {run}


def test_slack_gets_a_text_without_markup_of_a_runs_name(post, receiver):
    post.hooks.add("slack", receiver.url, "slack", None, None)
    searched(post.stage)
    post.deliver()
    assert all(set(each) == {"text"} for each in receiver.told)
    assert "<" not in receiver.told[-1]["text"]


@pytest.mark.parametrize("limit", ["budget", "deadline"])
def test_four_fifths_of_a_limit_are_news_once(limit, post):
    lines = post.stage.state.ledger.lines(searched(post.stage))
    whole = Account.replay((each.entry, each.elapsed_s) for each in lines)
    first, goal = lines[0].entry, whole.job.goal
    spent, passed = whole.history.spent_usd / 0.9, whole.history.elapsed_s / 0.9
    goal = replace(goal, budget_usd=spent) if limit == "budget" else replace(goal, budget_usd=None, deadline_s=passed)
    account, events = Account(), []
    for line in (replace(lines[0], entry=replace(first, job=replace(first.job, goal=goal))), *lines[1:]):
        after = account.after(line.entry, line.elapsed_s)
        events += [event for event, _ in news_of(line, account, after, lambda: False)]
        account = after
    assert events == [limit, "waiting"]


def test_a_service_sends_by_itself(tmp_path, receiver):
    with staged(tmp_path / "home", news_every_s=0.01) as stage:
        assert stage.ask("POST", f"{API}/hooks", "ada", {"name": "ci", "url": receiver.url}).status == 201
        run = searched(stage)
        assert receiver.came.wait(120)
        assert receiver.told[0]["run"] == run


def test_a_fault_is_logged_and_the_next_news_is_sent_all_the_same(caplog):
    asked: list[int] = []

    def due():
        asked.append(len(asked))
        if len(asked) == 1:
            raise ZeroDivisionError
        return []

    async def until_it_was_asked_again():
        task = asyncio.create_task(Courier(None, SimpleNamespace(due=due), None).run_forever(0.001))
        while len(asked) < 2:
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(asyncio.wait_for(until_it_was_asked_again(), 60))
    assert "news could not be sent" in caplog.text


def test_an_address_that_no_request_can_be_made_to_keeps_nothing_from_others(post, receiver):
    post.hooks.add("odd", "https://" + "x" * 70 + ".example/", "json", None, None)
    post.hooks.add("zz", receiver.url, "json", None, None)
    searched(post.stage)
    post.deliver()
    odd, here = post.hooks.all()
    assert odd.trouble
    assert (here.trouble, len(receiver.heard) > 0) == ("", True)


def test_an_answer_without_an_end_is_not_waited_for(post):
    """Each of its pieces comes within the timeout, so only not reading it ends it."""
    over = threading.Event()

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            while not over.wait(0.01):
                try:
                    self.wfile.write(b"more")
                except OSError:  # the courier has left
                    return

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    post.hooks.add("endless", f"http://127.0.0.1:{server.server_address[1]}/", "json", None, None)
    searched(post.stage)
    sending = threading.Thread(target=post.deliver, daemon=True)
    try:
        sending.start()
        sending.join(10)
        assert not sending.is_alive()
        assert post.hooks.all()[0].trouble == ""
    finally:
        over.set()
        sending.join()
        server.shutdown()
        serving.join()
        server.server_close()


def test_what_arrived_at_a_hook_says_nothing_of_a_later_one_of_its_name(post, receiver):
    post.hooks.add("ci", receiver.url, "json", None, None)
    (removed,) = post.hooks.all()
    post.hooks.remove("ci")
    searched(post.stage)
    post.hooks.add("ci", "https://elsewhere.example/", "json", None, None)
    post.hooks.arrived(removed, removed.sent)
    post.hooks.failed(removed, "away")
    (hook,) = post.hooks.all()
    assert hook.sent > removed.sent
    assert hook.trouble == ""


@pytest.mark.parametrize(
    "url",
    ["http://hooks.example/", "ftp://x/", "https://", "https://ada:secret@x/", "javascript:1", "https://[", "//x"],
)
def test_an_address_that_is_not_safe_is_refused(url):
    with pytest.raises(UserError, match="url:"):
        check_url(url)


def test_only_admins_add_hooks_and_the_address_is_not_shown_again(post, receiver):
    stage = post.stage
    body = {"name": "ci", "url": receiver.url}
    for who in ("vera", "ron"):
        assert stage.ask("POST", f"{API}/hooks", who, body).status == 403
        assert stage.ask("GET", f"{API}/hooks", who).status == 403
    made = stage.ask("POST", f"{API}/hooks", "ada", body)
    assert made.status == 201
    told = stage.ask("GET", f"{API}/hooks", "ada")
    assert told.json()["hooks"][0]["shown"].startswith("http://127.0.0.1:")
    assert made.json()["secret"] not in told.body.decode()
    assert "of-the-receiver" not in told.body.decode()
    assert stage.ask("POST", f"{API}/hooks", "ada", {"name": "x", "url": "http://169.254.169.254/"}).status == 422
    assert stage.ask("DELETE", f"{API}/hooks/ci", "ada").status == 204
    assert stage.ask("DELETE", f"{API}/hooks/ci", "ada").status == 404
