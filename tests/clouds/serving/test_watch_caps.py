"""Watching the caps of a deployment by its engine's histograms, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from mlcd.clouds.serving.histograms import Histograms, histogram_of, read_histograms
from mlcd.clouds.serving.watch_caps import watch_caps, watchable_caps
from mlcd.core.clock import VirtualClock
from mlcd.planners.serve.llm.cap_monitor import Counts
from mlcd.planners.serve.nouns import Cap, Figure

TTFT, TPOT = Cap(Figure.TTFT_P95, 0.5), Cap(Figure.TPOT_P95, 0.03)
BOUNDS = (0.025, 0.05, 0.5, 1.0)


def text(ttft: dict[float, int], tpot: dict[float, int]) -> str:
    """Metrics with so many requests in the bucket of each bound; above the last one: infinity."""
    lines = ["# TYPE vllm:time_to_first_token_seconds histogram", 'vllm:num_requests_running{engine="0"} 3.0']
    for name, buckets in (("time_to_first_token", ttft), ("request_time_per_output_token", tpot)):
        for bound in (*BOUNDS, float("inf")):
            count = sum(n for at, n in buckets.items() if at <= bound)
            le = "+Inf" if bound == float("inf") else f"{bound}"
            lines.append(f'vllm:{name}_seconds_bucket{{engine="0",le="{le}",model_name="m"}} {count}.0')
    return "\n".join(lines)


@dataclass
class Engine:
    """Counts `rate` requests a second, a share of them too late from some moment on."""

    clock: VirtualClock
    late: Callable[[float], float]
    rate: float = 10.0
    ends_s: float = float("inf")
    done: float = 0.0
    counts: dict[float, int] = field(default_factory=lambda: {0.025: 0, 1.0: 0})

    def read(self) -> Histograms | None:
        now = self.clock.elapsed_s()
        came = round(self.rate * (now - self.done))
        late = round(came * self.late(now))
        self.done = now
        self.counts[1.0] += late
        self.counts[0.025] += came - late
        return read_histograms(text(self.counts, {0.025: 1}))

    def alive(self) -> bool:
        return self.clock.elapsed_s() < self.ends_s


def test_requests_beyond_the_bucket_of_a_cap_are_counted() -> None:
    found = read_histograms(text({0.5: 90, 1.0: 7, float("inf"): 3}, {0.025: 5, 0.05: 2}))
    ttft, tpot = histogram_of(TTFT, found), histogram_of(TPOT, found)
    assert ttft is not None
    assert tpot is not None
    assert ttft.counts(0.5) == Counts(10, 100)
    assert ttft.counts(0.6) == Counts(3, 100)  # between 0.5 and 1.0 nobody knows
    assert ttft.counts(30.0) == Counts(0, 100)
    assert tpot.counts(0.03) == Counts(0, 7)
    assert watchable_caps((TTFT, Cap(Figure.P95, 2.0)), found) == (TTFT,)


def test_engines_behind_one_address_are_added_and_a_restart_counts_from_zero() -> None:
    one = text({0.5: 4}, {})
    both = histogram_of(TTFT, read_histograms(f"{one}\n{one}".replace('engine="0"', 'engine="1"', 5)))
    assert both is not None
    assert both.counts(0.5).total == 8
    restarted = histogram_of(TTFT, read_histograms(one))
    assert restarted is not None
    assert restarted.since(both).counts(0.5).total == 4
    assert both.since(restarted).counts(0.5).total == 4


def test_no_alarm_while_the_caps_hold() -> None:
    clock = VirtualClock()
    engine = Engine(clock, late=lambda now: 0.03)
    assert list(watch_caps((TTFT, TPOT), engine.read, engine.alive, clock, until_s=7_200)) == []
    assert clock.elapsed_s() == pytest.approx(7_200, abs=1)


def test_an_alarm_follows_broken_caps_within_minutes_with_the_arrival_rate() -> None:
    clock = VirtualClock()
    engine = Engine(clock, late=lambda now: 0.03 if now < 3_600 else 0.2)
    said = next(watch_caps((TTFT, TPOT), engine.read, engine.alive, clock, until_s=7_200))
    assert 3_600 < clock.elapsed_s() <= 3_600 + 4 * 60 + 5
    assert said.words == "ttft_p95 <= 500 ms: 360 of 1,800 requests were above it (5 % allowed)"
    assert said.rate == pytest.approx(10.0, rel=0.05)


def test_a_burst_raises_no_alarm() -> None:
    clock = VirtualClock()
    engine = Engine(clock, late=lambda now: 0.9 if 3_600 < now < 3_700 else 0.0)
    assert list(watch_caps((TTFT,), engine.read, engine.alive, clock, until_s=7_200)) == []


def test_another_alarm_follows_after_three_more_windows() -> None:
    clock = VirtualClock()
    engine = Engine(clock, late=lambda now: 0.2)
    assert len(list(watch_caps((TTFT,), engine.read, engine.alive, clock, until_s=60 * 7))) == 2


def test_it_ends_with_the_engine() -> None:
    clock = VirtualClock()
    engine = Engine(clock, late=lambda now: 0.0, ends_s=100)
    assert list(watch_caps((TTFT,), engine.read, engine.alive, clock, until_s=7_200)) == []
    assert clock.elapsed_s() < 105


def test_an_engine_that_does_not_answer_for_a_moment_loses_nothing() -> None:
    clock = VirtualClock()
    engine = Engine(clock, late=lambda now: 0.2)

    def read() -> Histograms | None:
        return None if 60 < clock.elapsed_s() < 200 else engine.read()

    (said, *_) = watch_caps((TTFT,), read, engine.alive, clock, until_s=600)
    assert "of 2," in said.words or "of 3," in said.words
