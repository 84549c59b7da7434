"""Connections that ask nothing are closed; those that are asked something, answered or watched are not."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlcd.service.web.safety.limits import IdleConnections


@dataclass(eq=False)
class Request:
    response_complete: bool = False


@dataclass(eq=False)
class Connection:
    """As uvicorn has them."""

    cycle: Request | None = None
    closed: bool = False
    transport: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.transport = self

    def close(self) -> None:
        self.closed = True


def test_who_has_asked_nothing_between_two_looks_is_let_go():
    new, slow = Connection(), Connection(Request(response_complete=True))
    silent = IdleConnections()
    silent.close_idle([new, slow])
    assert not new.closed
    assert not slow.closed
    silent.close_idle([new, slow])
    assert new.closed
    assert slow.closed


def test_who_is_being_answered_stays_however_long_and_so_does_who_asks_again():
    watching, asking = Connection(Request()), Connection()
    silent = IdleConnections()
    for _ in range(5):
        silent.close_idle([watching, asking])
        asking.cycle = Request(response_complete=True)
    assert not watching.closed
    assert not asking.closed
    watching.cycle.response_complete = True
    silent.close_idle([watching])
    assert not watching.closed
    silent.close_idle([watching])
    assert watching.closed
