"""Notifications arrive at a receiver: at least once, in order, signed, and also after it was unreachable for long."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from posting import PUBLIC, searched
from stage import API, JOB, staged

from mlcd.core.errors import UserError
from mlcd.core.ledger import Account
from mlcd.service.notifications.abandoned_runs import AbandonedRunDetector
from mlcd.service.notifications.delivery import NotificationDelivery
from mlcd.service.notifications.events import events_of_entry
from mlcd.service.notifications.webhook import check_url

pytestmark = pytest.mark.live


def test_news_of_a_search_and_of_its_run_arrives_in_order_and_once(post, receiver):
    secret = post.add("json", receiver.url)
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
    post.add("json", receiver.url)
    searched(post.stage, launch=True)
    post.deliver()
    assert "waiting" not in [each["event"] for each in receiver.told]


def test_a_receiver_that_was_away_gets_everything_when_it_is_back_and_nothing_of_it_is_lost(post, receiver):
    post.add("json", receiver.url)
    runs = [searched(post.stage) for _ in range(2)]
    receiver.answers = [500, 302]
    post.deliver()
    assert len(receiver.heard) == 1
    (told,) = post.all()
    assert told.trouble.endswith("answered 500")
    assert "of-the-receiver" not in told.trouble
    post.deliver(after_s=4)  # too early
    assert len(receiver.heard) == 1
    post.deliver(after_s=1)
    assert len(receiver.heard) == 2
    post.deliver(after_s=10)
    assert [each["run"] for each in receiver.told if each["event"] == "waiting"][-2:] == runs
    (told,) = post.all()
    assert (told.trouble, told.tries, told.next_at) == ("", 0, None)


def test_one_receiver_that_is_away_keeps_nothing_from_another(post, receiver):
    post.add("json", "http://127.0.0.1:1/")
    post.add("json", receiver.url)
    run = searched(post.stage)
    post.deliver()
    assert receiver.told[-1]["run"] == run
    away, here = post.all()
    assert "cannot be reached" in away.trouble
    assert here.trouble == ""


def test_each_hears_of_the_runs_that_they_asked_for_and_of_none_from_before(post, receiver):
    searched(post.stage)
    post.add("json", receiver.url, member="rita")
    searched(post.stage, "ron")
    run = searched(post.stage, "rita")
    post.deliver()
    assert {each["run"] for each in receiver.told} == {run}


def test_slack_gets_a_text_without_markup_of_a_runs_name_and_a_link_to_its_page(post, receiver):
    post.add("slack", receiver.url)
    run = searched(post.stage)
    post.deliver()
    assert all(set(each) == {"text"} for each in receiver.told)
    text, link = receiver.told[-1]["text"].split("\n")
    assert "<" not in text
    assert link == f"<{PUBLIC}/runs/{run}|{run}>"


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
        events += [event for event, _ in events_of_entry(line, account, after, lambda: False)]
        account = after
    assert events == [limit, "waiting"]


def test_a_service_sends_by_itself(tmp_path, receiver):
    with staged(tmp_path / "home", news_every_s=0.01) as stage:
        assert stage.ask("POST", f"{API}/news", "ada", ours(receiver.url)).status == 201
        run = searched(stage)
        assert receiver.came.wait(120)
        assert receiver.told[0]["run"] == run


def test_a_fault_is_logged_and_the_next_news_is_sent_all_the_same(post, caplog):
    asked: list[int] = []

    def newest():
        asked.append(len(asked))
        if len(asked) == 1:
            raise ZeroDivisionError
        return 0

    async def until_it_was_asked_again():
        delivery = NotificationDelivery(post.receivers, SimpleNamespace(newest=newest), {})
        task = asyncio.create_task(
            delivery.run_forever(0.001, AbandonedRunDetector(post.stage.state.ledger, lambda: post.time))
        )
        while len(asked) < 2:
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(asyncio.wait_for(until_it_was_asked_again(), 60))
    assert "checking for notifications failed" in caplog.text


def test_an_address_that_no_request_can_be_made_to_keeps_nothing_from_others(post, receiver):
    post.add("json", "https://" + "x" * 70 + ".example/")
    post.add("json", receiver.url)
    searched(post.stage)
    post.deliver()
    odd, here = post.all()
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
                except OSError:  # the delivery has left
                    return

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    post.add("json", f"http://127.0.0.1:{server.server_address[1]}/")
    searched(post.stage)
    sending = threading.Thread(target=post.deliver, daemon=True)
    try:
        sending.start()
        sending.join(10)
        assert not sending.is_alive()
        assert post.all()[0].trouble == ""
    finally:
        over.set()
        sending.join()
        server.shutdown()
        serving.join()
        server.server_close()


def test_what_arrived_at_a_removed_one_says_nothing_of_the_next(post, receiver):
    post.add("json", receiver.url)
    (removed,) = post.all()
    post.receivers.remove(removed)
    searched(post.stage)
    post.add("json", "https://elsewhere.example/")
    post.receivers.arrived(removed, removed.sent)
    post.receivers.failed(removed, "away")
    (other,) = post.all()
    assert other.number > removed.number
    assert other.sent > removed.sent
    assert other.trouble == ""


@pytest.mark.parametrize(
    "url",
    ["http://hooks.example/", "ftp://x/", "https://", "https://ada:secret@x/", "javascript:1", "https://[", "//x"],
)
def test_an_address_that_is_not_safe_is_refused(url):
    with pytest.raises(UserError, match="address:"):
        check_url(url)


def test_only_admins_add_webhooks_and_the_address_is_not_shown_again(post, receiver):
    stage = post.stage
    body = ours(receiver.url)
    for who in ("vera", "ron"):
        assert stage.ask("POST", f"{API}/news", who, body).status == 403
        assert stage.ask("POST", f"{API}/news", who, {**body, "own": True}).status == 422
    made = stage.ask("POST", f"{API}/news", "ada", body)
    assert made.status == 201
    number = made.json()["number"]
    told = stage.ask("GET", f"{API}/news", "ada")
    assert told.json()["receivers"][0]["shown"].startswith("http://127.0.0.1:")
    assert made.json()["secret"] not in told.body.decode()
    assert "of-the-receiver" not in told.body.decode()
    assert stage.ask("GET", f"{API}/news", "ron").json()["receivers"] == []
    assert stage.ask("POST", f"{API}/news", "ada", ours("http://169.254.169.254/")).status == 422
    for what in (f"{API}/news/{number}/test", f"{API}/news/{number}"):
        assert stage.ask("POST" if what.endswith("test") else "DELETE", what, "ron").status == 404
    assert stage.ask("DELETE", f"{API}/news/{number}", "ada").status == 204
    assert stage.ask("DELETE", f"{API}/news/{number}", "ada").status == 404


def ours(address: str, kind: str = "json") -> dict[str, object]:
    return {"kind": kind, "address": address, "own": False}


def test_a_receiver_that_took_something_is_tried_again_soon(post, receiver):
    post.add("json", receiver.url, events=("waiting",))
    for _ in range(2):
        searched(post.stage)
    receiver.answers = [500, 500, 500, 204, 500]
    for wait_s in (0, 5, 10, 20):
        post.deliver(after_s=wait_s)
    (told,) = post.all()
    assert (told.tries, told.next_at) == (1, post.time + timedelta(seconds=5))
