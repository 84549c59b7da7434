"""Who receives which news, and that none of them holds up another."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from posting import PUBLIC, Post, searched
from stage import API

from mlcd.core.errors import UserError
from mlcd.service.notifications.delivery import NotificationDelivery
from mlcd.service.notifications.events import TEST, Notification
from mlcd.service.notifications.mail import MailServer
from mlcd.service.notifications.reader import NotificationReader
from mlcd.service.notifications.receivers import MOST_EACH
from mlcd.service.notifications.senders import senders_by_kind
from mlcd.service.notifications.webhook import WebhookSender

pytestmark = pytest.mark.live


@dataclass
class Hanging:
    """Takes connections, and answers with these bytes again and again, which never are a whole answer."""

    dripping: bytes = b""
    port: int = 0
    came: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def serve(self, listener: socket.socket) -> None:
        taken = []
        listener.settimeout(0.05)
        while not self.over.wait(0.02):
            try:
                taken.append(listener.accept()[0])
                self.came.set()
            except TimeoutError:
                pass
            for each in taken if self.dripping else ():
                try:
                    each.sendall(self.dripping)
                except OSError:  # who was there has left
                    taken.remove(each)
                    break
        for each in taken:
            each.close()


@contextmanager
def hanging(dripping: bytes = b"") -> Iterator[Hanging]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Hanging(dripping, listener.getsockname()[1])
        thread = threading.Thread(target=found.serve, args=(listener,))
        thread.start()
        try:
            yield found
        finally:
            found.over.set()
            thread.join()


@contextmanager
def one_thread_each(post: Post, mail: MailServer | None = None) -> Iterator[NotificationDelivery]:
    senders = senders_by_kind(lambda: post.time, mail)
    delivery = NotificationDelivery(
        post.receivers, NotificationReader(post.stage.state.ledger, PUBLIC), senders, at_once=1
    )
    yield delivery
    delivery.close()


def test_a_receiver_that_hangs_keeps_nothing_from_another(post, receiver):
    with hanging() as dead:
        post.add("json", dead.url)
        post.add("json", receiver.url)
        run = searched(post.stage)
        delivery = post.delivery()
        first, second = delivery.start()
        second.result(60)
        assert {each["run"] for each in receiver.told} == {run}
        assert dead.came.wait(60)
        assert not first.done()
        later = searched(post.stage)
        (again,) = delivery.start()  # who is still being served is not served a second time
        again.result(60)
        assert not first.done()
        assert receiver.told[-1]["run"] == later
        dead.over.set()
        delivery.close()
    assert "cannot be reached" in post.all()[0].trouble


def test_a_mail_server_that_hangs_keeps_nothing_from_webhooks(post, receiver):
    with hanging() as dead:
        post.add("mail", "ada@example.org")
        post.add("json", receiver.url)
        searched(post.stage)
        with one_thread_each(post, MailServer("127.0.0.1", dead.port, "none", "mlcd@example.org")) as delivery:
            mailed, sent = delivery.start()
            sent.result(60)
            assert receiver.told
            assert not mailed.done()
            dead.over.set()


def test_no_answer_takes_longer_than_its_timeout_in_all(post):
    """A byte now and then keeps any timeout of a single read from passing."""
    with hanging(b"HTTP/1.1 200 OK\r\nX: ") as drips:
        post.add("json", drips.url)
        news = Notification(1, "", TEST, post.time, "a test")
        trouble = WebhookSender(lambda: post.time, answer_s=0.3).send(post.all()[0], news)
    assert "cannot be reached (TimeoutError)" in trouble


def test_more_receivers_than_threads_all_get_theirs(post, receiver):
    for _ in range(5):
        post.add("json", receiver.url)
    searched(post.stage)
    with one_thread_each(post) as delivery:
        delivery.deliver()
    assert len(receiver.told) % 5 == 0
    assert {each.trouble for each in post.all()} == {""}


def test_each_gets_only_the_events_of_its_choice(post, receiver):
    post.add("json", receiver.url, events=("infeasible", "failed"))
    searched(post.stage)
    post.deliver()
    assert receiver.told == []
    with pytest.raises(UserError, match="unknown event 'finnished'"):
        post.add("json", receiver.url, events=("finnished",))
    with pytest.raises(UserError, match="unknown member 'rno'"):
        post.add("json", receiver.url, member="rno")
    with pytest.raises(UserError, match="unknown team 'vision'"):
        post.add("json", receiver.url, team="vision")
    with pytest.raises(UserError, match="choose at least one"):
        post.add("json", receiver.url, events=())


def test_what_was_no_news_is_not_stored_for_each_entry_and_not_sent_after_a_restart(post, receiver):
    post.add("json", receiver.url, events=("waiting",))
    (before,) = post.all()
    searched(post.stage, launch=True)
    post.deliver()
    assert post.all() == [before]
    run = searched(post.stage)
    post.deliver()
    post.deliver()
    assert [each["run"] for each in receiver.told] == [run]


def test_a_member_who_is_removed_gets_no_more_news(post):
    post.add("mail", "ron@example.org", "ron")
    post.stage.state.members.remove("ron")
    assert post.receivers.due() == []


def test_a_member_has_a_few_receivers_of_their_own_at_most(post):
    for _ in range(MOST_EACH):
        post.add("mail", "ron@example.org", "ron")
    with pytest.raises(UserError, match=f"{MOST_EACH} are the most"):
        post.add("mail", "ron@example.org", "ron")
    post.add("mail", "rita@example.org", "rita")


def test_a_test_message_says_how_it_went_and_there_are_only_so_many(post, receiver):
    stage = post.stage
    made = stage.ask("POST", f"{API}/news", "ada", {"kind": "json", "address": receiver.url, "own": False}).json()
    told = stage.ask("POST", f"{API}/news/{made['number']}/test", "ada", {})
    assert told.json() == {"trouble": ""}
    assert receiver.told[-1]["event"] == "test"
    receiver.answers = [500]
    assert stage.ask("POST", f"{API}/news/{made['number']}/test", "ada", {}).json()["trouble"].endswith("answered 500")
    statuses = [stage.ask("POST", f"{API}/news/{made['number']}/test", "ada", {}).status for _ in range(6)]
    assert 429 in statuses
    assert post.all()[0].tries == 0
