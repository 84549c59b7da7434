"""Streams of events: so many for each member, and none for somebody who is no member any more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest
from stage import API, PLENTY, Stage, Told, staged

SOON = replace(PLENTY, known_for_s=0.05, streams_each=2)
EVENTS = f"{API}/events"
PATIENCE_S = 300.0


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    with staged(tmp_path / "home", limits=SOON) as stage:
        yield stage


@contextmanager
def watching(stage: Stage, *who: str) -> Iterator[list[Future[Told]]]:
    """A stream for each, all of them open. They end with their members' tokens."""
    while not stage.begun.empty():
        stage.begun.get()
    with ThreadPoolExecutor(len(who)) as others:
        streams = [others.submit(stage.ask, "GET", EVENTS, each) for each in who]
        try:
            assert [stage.begun.get(timeout=PATIENCE_S) for _ in who] == [200] * len(who)
            yield streams
        finally:
            for member in stage.state.members.all():
                stage.state.members.renew(member.name)


def test_who_is_removed_is_told_nothing_more_and_the_others_are(stage):
    with watching(stage, "vera", "rita") as (veras, ritas):
        assert stage.ask("DELETE", f"{API}/members/vera", "ada").status == 204
        assert veras.result(PATIENCE_S).status == 200  # which has an end now
        assert not ritas.done()
    assert ritas.result(PATIENCE_S).status == 200


def test_a_session_that_is_over_ends_its_streams(stage):
    cookie = stage.sign_in("ron")
    with watching(stage, "ada"), ThreadPoolExecutor() as others:
        stream = others.submit(stage.ask, "GET", EVENTS, headers={"cookie": cookie})
        assert stage.begun.get(timeout=PATIENCE_S) == 200
        stage.age_sessions()
        assert stream.result(PATIENCE_S).status == 200


def test_more_streams_than_allowed_are_refused_to_that_member_alone_and_closed_ones_do_not_count(stage):
    with watching(stage, "vera", "vera", "rita"):
        refused = stage.ask("GET", EVENTS, "vera")
        assert (refused.status, refused.headers["retry-after"]) == (429, "5")
        assert "2 streams are open already" in refused.error
        assert stage.ask("GET", f"{API}/runs", "vera").status == 200
    stage.tokens["vera"] = stage.state.members.renew("vera")
    with watching(stage, "vera", "vera"):
        pass
