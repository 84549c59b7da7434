"""Lambda in a box: billing, queues, throttling and limits, with fake environments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from mlcd_box.bill import bill
from mlcd_box.cloud.functions.archives import unpack
from mlcd_box.cloud.functions.pool import CallResult, Environment, Pool
from mlcd_box.cloud.functions.records import PENDING_S, Archive, Function
from mlcd_box.cloud.functions.rules import (
    KEPT_WARM_S,
    MAX_CODE,
    MAX_PAYLOAD,
    RETRIES_AFTER_S,
    ApiError,
    billed_ms,
    check_size,
    vcpus,
    vcpus_at_init,
)
from mlcd_box.cloud.functions.service import InitFailed, Service
from mlcd_box.events import Event, EventLog, read_events
from mlcd_box.offers import function_prices

INIT_S, RUNS_S = 0.25, 1.5
OK, FAILED, DEAD = CallResult(b"1"), CallResult(b"{}", "Unhandled"), CallResult(b"{}", "Unhandled", is_alive=False)


@dataclass
class World:
    """A region with its own clock. Every call takes `RUNS_S` and returns the next of `answers`, then `OK`."""

    path: Path
    now_s: float = 1_000.0
    most: int = 1_000
    answers: list[CallResult | Exception] = field(default_factory=list)
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

    def run_next_queued(self) -> float:
        """Run the next queued call; return how long it waited."""
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

    def call(self, payload: bytes, request_id: str, timeout_s: float) -> CallResult:
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


def test_a_cold_start_bills_its_init_time_and_the_next_call_is_warm(world: World) -> None:
    world.create()
    assert [world.lambda_.call("f", b"") for _ in range(2)] == [OK, OK]
    assert [event["billed_ms"] for event in world.events("called")] == [1_750, 1_500]
    assert len(world.events("cold_start")) == world.started == 1


def test_memory_time_and_calls_are_billed_with_milliseconds_rounded_up(world: World) -> None:
    assert billed_ms(0.0, 0.0101) == 11
    assert billed_ms(0.0005, 0.0005) == 1
    world.create(memory_mb=2_048)
    world.lambda_.call("f", b"")
    (item,) = bill(read_events(world.path), world.now_s)
    assert item.seconds == 1.75
    assert item.usd == pytest.approx(2 * 1.75 * function_prices()["gb-second"] + function_prices()["call"])


@given(some.floats(0, 900), some.floats(0, 900))
def test_billed_time_exceeds_used_time_by_at_most_a_millisecond(init_s: float, ran_s: float) -> None:
    assert -1e-6 <= billed_ms(init_s, ran_s) / 1_000 - (init_s + ran_s) <= 0.001 + 1e-6


def test_1769_mb_are_one_vcpu_and_code_is_loaded_with_at_least_one() -> None:
    assert vcpus(1_769) == 1.0
    assert vcpus(10_240) == pytest.approx(5.79, abs=0.01)
    assert vcpus_at_init(128) == 1.0


@pytest.mark.parametrize(("memory_mb", "timeout_s"), [(127, 3), (10_241, 3), (128, 0), (128, 901)])
def test_memory_or_timeout_outside_the_limits_is_refused(memory_mb: int, timeout_s: int) -> None:
    with pytest.raises(ApiError) as refused:
        check_size(memory_mb, timeout_s)
    assert refused.value.status == 400


def test_a_call_above_the_concurrency_limit_gets_429_and_is_not_billed(world: World) -> None:
    world.create()
    world.most = 0
    with pytest.raises(ApiError) as refused:
        world.lambda_.call("f", b"")
    assert refused.value.status == 429
    assert world.events("throttled")
    assert not world.events("called")


def test_a_throttled_queued_call_is_retried_with_backoff(world: World) -> None:
    world.create()
    world.most = 0
    world.lambda_.queue("f", b"")
    assert [world.run_next_queued() for _ in range(3)] == [0.0, 1.0, 2.0]
    assert world.lambda_.queued == 1
    world.most = 1
    world.run_next_queued()
    assert world.lambda_.queued == 0
    assert len(world.events("called")) == 1


def test_a_failed_queued_call_is_retried_twice_and_each_attempt_is_billed(world: World) -> None:
    world.create()
    world.answers = [FAILED, DEAD, FAILED]
    world.lambda_.queue("f", b"")
    assert [world.run_next_queued() for _ in range(3)] == [0.0, *RETRIES_AFTER_S]
    assert not world.waiting
    assert [event["error"] for event in world.events("called")] == ["Unhandled"] * 3
    assert world.started == 2  # the dead one was not used again
    assert world.ended == ["e-1"]


def test_retries_can_be_switched_off(world: World) -> None:
    world.create()
    world.lambda_.set_retries("f", 0)
    world.answers = [FAILED]
    world.lambda_.queue("f", b"")
    world.run_next_queued()
    assert not world.waiting


def test_reserved_concurrency_belongs_to_one_function(world: World) -> None:
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
            except ApiError as refused:
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


def test_an_idle_environment_is_ended(world: World) -> None:
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


def test_a_failed_init_is_answered_with_an_error_and_billed(world: World) -> None:
    world.create()

    def broken(function: Function) -> Environment:
        raise InitFailed(DEAD, INIT_S)

    world.lambda_.start = broken
    assert world.lambda_.call("f", b"") == DEAD
    assert world.events("called")[0]["billed_ms"] == 250


def test_a_pending_function_cannot_be_called_or_created_again(world: World) -> None:
    function = world.create()
    world.now_s -= PENDING_S
    for do in (lambda: world.lambda_.call("f", b""), lambda: world.lambda_.create(function)):
        with pytest.raises(ApiError) as refused:
            do()
        assert refused.value.status == 409


def test_a_payload_has_a_limit_by_the_type_of_the_call(world: World) -> None:
    world.create()
    payload = bytes(MAX_PAYLOAD["Event"] + 1)
    world.lambda_.call("f", payload)
    with pytest.raises(ApiError) as refused:
        world.lambda_.queue("f", payload)
    assert refused.value.status == 413


def test_code_and_layers_have_a_limit_together(world: World, tmp_path: Path) -> None:
    layer = world.lambda_.publish("l", Archive(Path(), "", 1, MAX_CODE), "", ())
    with pytest.raises(ApiError, match="Unzipped size"):
        world.create(layers=(layer,))
    with pytest.raises(ApiError, match="Could not unzip"):
        unpack(b"no zip file", tmp_path)


def test_an_unknown_function_is_not_found(world: World) -> None:
    with pytest.raises(ApiError) as refused:
        world.lambda_.find("nobody")
    assert refused.value.status == 404
