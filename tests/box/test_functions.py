"""Lambda of a box: its rules, on environments that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from mlcd_box.bill import bill
from mlcd_box.cloud.functions.archives import unpack
from mlcd_box.cloud.functions.pool import Answer, Environment, Pool
from mlcd_box.cloud.functions.records import PENDING_S, Archive, Function
from mlcd_box.cloud.functions.rules import (
    KEPT_WARM_S,
    LARGEST_CODE,
    LARGEST_PAYLOAD,
    RETRIES_AFTER_S,
    Refused,
    billed_ms,
    check_size,
    vcpus,
    vcpus_at_init,
)
from mlcd_box.cloud.functions.service import InitFailed, Service
from mlcd_box.events import Event, EventLog, read_events
from mlcd_box.offers import function_prices

INIT_S, RUNS_S = 0.25, 1.5
OK, FAILED, DEAD = Answer(b"1"), Answer(b"{}", "Unhandled"), Answer(b"{}", "Unhandled", is_alive=False)


@dataclass
class World:
    """A region with a clock of its own; every call takes `RUNS_S`, and gives the next of `answers`, then 1."""

    path: Path
    now_s: float = 1_000.0
    most: int = 1_000
    answers: list[Answer | Exception] = field(default_factory=list)
    during: Callable[[], None] = lambda: None
    started: int = 0
    ended: list[str] = field(default_factory=list)
    waiting: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        pool = Pool(lambda: self.most, lambda: self.now_s)
        self.lambda_ = Service(
            "us-east-1",
            self._start,
            pool,
            EventLog(self.path),
            later=lambda seconds, do: self.waiting.append((seconds, do)),
            now_s=lambda: self.now_s,
        )

    def _start(self, function: Function) -> Environment:
        self.started += 1
        return FakeEnvironment(f"e-{self.started}", self)

    def create(self, **about: object) -> Function:
        function = Function(
            **{
                "name": "f",
                "region": "us-east-1",
                "runtime": "python3.11",
                "handler": "a.b",
                "role": "r",
                "memory_mb": 1_024,
                "timeout_s": 3,
                "code": Archive(Path(), "", 1, 1),
                "layers": (),
                "variables": {},
                "description": "",
                "tags": {},
                "created_at": self.now_s,
                **about,
            }
        )
        self.lambda_.create(function)
        self.now_s += PENDING_S
        return function

    def work_off(self) -> float:
        """Do what waits, and say how long it had to."""
        seconds, do = self.waiting.pop(0)
        self.now_s += seconds
        do()
        return seconds

    def events(self, kind: str) -> list[Event]:
        return [event for event in read_events(self.path) if event["kind"] == kind]


@dataclass
class FakeEnvironment:
    id: str
    world: World
    init_s: float = INIT_S

    def call(self, payload: bytes, request_id: str, timeout_s: float) -> Answer:
        self.world.now_s += RUNS_S
        self.world.during()
        answer = self.world.answers.pop(0) if self.world.answers else OK
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        self.world.ended.append(self.id)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "events.jsonl")


def test_the_first_call_is_cold_and_billed_with_its_init_and_the_second_is_warm(world: World) -> None:
    world.create()
    assert [world.lambda_.call("f", b"") for _ in range(2)] == [OK, OK]
    assert [event["billed_ms"] for event in world.events("called")] == [1_750, 1_500]
    assert len(world.events("cold_start")) == world.started == 1


def test_milliseconds_are_rounded_up_and_memory_and_calls_are_paid(world: World) -> None:
    assert billed_ms(0.0, 0.0101) == 11
    assert billed_ms(0.0005, 0.0005) == 1
    world.create(memory_mb=2_048)
    world.lambda_.call("f", b"")
    (item,) = bill(read_events(world.path), world.now_s)
    assert item.seconds == 1.75
    assert item.usd == pytest.approx(2 * 1.75 * function_prices()["gb-second"] + function_prices()["call"])


@given(some.floats(0, 900), some.floats(0, 900))
def test_never_less_is_billed_than_was_used_and_at_most_a_millisecond_more(init_s: float, ran_s: float) -> None:
    assert -1e-6 <= billed_ms(init_s, ran_s) / 1_000 - (init_s + ran_s) <= 0.001 + 1e-6


def test_a_vcpu_comes_with_1769_mb_and_a_whole_one_while_code_is_loaded() -> None:
    assert vcpus(1_769) == 1.0
    assert vcpus(10_240) == pytest.approx(5.79, abs=0.01)
    assert vcpus_at_init(128) == 1.0


@pytest.mark.parametrize(("memory_mb", "timeout_s"), [(127, 3), (10_241, 3), (128, 0), (128, 901)])
def test_what_lambda_does_not_sell_is_refused(memory_mb: int, timeout_s: int) -> None:
    with pytest.raises(Refused) as refused:
        check_size(memory_mb, timeout_s)
    assert refused.value.status == 400


def test_a_call_beyond_the_account_is_answered_with_429_and_billed_nothing(world: World) -> None:
    world.create()
    world.most = 0
    with pytest.raises(Refused) as refused:
        world.lambda_.call("f", b"")
    assert refused.value.status == 429
    assert world.events("throttled")
    assert not world.events("called")


def test_a_queued_call_that_is_throttled_waits_longer_each_time_and_then_runs(world: World) -> None:
    world.create()
    world.most = 0
    world.lambda_.queue("f", b"")
    assert [world.work_off() for _ in range(3)] == [0.0, 1.0, 2.0]
    assert world.lambda_.queued == 1
    world.most = 1
    world.work_off()
    assert world.lambda_.queued == 0
    assert len(world.events("called")) == 1


def test_a_queued_call_that_fails_is_tried_twice_more_and_billed_each_time(world: World) -> None:
    world.create()
    world.answers = [FAILED, DEAD, FAILED]
    world.lambda_.queue("f", b"")
    assert [world.work_off() for _ in range(3)] == [0.0, *RETRIES_AFTER_S]
    assert not world.waiting
    assert [event["error"] for event in world.events("called")] == ["Unhandled"] * 3
    assert world.started == 2  # the dead one was not used again
    assert world.ended == ["e-1"]


def test_a_function_may_ask_for_no_further_tries(world: World) -> None:
    world.create()
    world.lambda_.set_retries("f", 0)
    world.answers = [FAILED]
    world.lambda_.queue("f", b"")
    world.work_off()
    assert not world.waiting


def test_reserved_calls_are_a_functions_own_and_no_one_elses(world: World) -> None:
    world.create()
    world.create(name="other")
    world.most = 2
    world.lambda_.reserve("f", 1)
    codes = []

    def beside() -> None:
        world.during = lambda: None
        for name in ("f", "other"):
            try:
                world.lambda_.call(name, b"")
                codes.append(200)
            except Refused as refused:
                codes.append(refused.status)

    world.during = beside
    world.lambda_.call("f", b"")
    assert codes == [429, 200]


def test_a_changed_function_starts_cold(world: World) -> None:
    world.create()
    world.lambda_.call("f", b"")
    world.lambda_.update("f", memory_mb=512)
    assert world.ended == ["e-1"]
    world.lambda_.call("f", b"")
    assert world.started == 2


def test_an_environment_that_nobody_calls_is_ended(world: World) -> None:
    world.create()
    world.create(name="other")
    world.lambda_.call("f", b"")
    world.now_s += KEPT_WARM_S + 1
    world.lambda_.call("other", b"")
    assert world.ended == ["e-1"]


def test_no_more_than_the_timeout_is_billed(world: World) -> None:
    world.create(timeout_s=1)
    world.answers = [DEAD]
    world.lambda_.call("f", b"")
    assert world.events("called")[0]["billed_ms"] == 1_250


def test_code_that_cannot_be_loaded_is_answered_and_billed(world: World) -> None:
    world.create()

    def broken(function: Function) -> Environment:
        raise InitFailed(DEAD, INIT_S)

    world.lambda_.start = broken
    assert world.lambda_.call("f", b"") == DEAD
    assert world.events("called")[0]["billed_ms"] == 250


def test_a_function_cannot_be_called_while_it_is_created_and_not_created_twice(world: World) -> None:
    function = world.create()
    world.now_s -= PENDING_S
    for do in (lambda: world.lambda_.call("f", b""), lambda: world.lambda_.create(function)):
        with pytest.raises(Refused) as refused:
            do()
        assert refused.value.status == 409


def test_a_payload_has_a_limit_by_the_type_of_the_call(world: World) -> None:
    world.create()
    payload = bytes(LARGEST_PAYLOAD["Event"] + 1)
    world.lambda_.call("f", payload)
    with pytest.raises(Refused) as refused:
        world.lambda_.queue("f", payload)
    assert refused.value.status == 413


def test_code_and_layers_have_a_limit_together(world: World, tmp_path: Path) -> None:
    layer = world.lambda_.publish("l", Archive(Path(), "", 1, LARGEST_CODE), "", ())
    with pytest.raises(Refused, match="Unzipped size"):
        world.create(layers=(layer,))
    with pytest.raises(Refused, match="Could not unzip"):
        unpack(b"no zip file", tmp_path)


def test_a_function_that_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(Refused) as refused:
        world.lambda_.find("nobody")
    assert refused.value.status == 404
