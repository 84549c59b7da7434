"""A trial of a language model is a sweep that ends when more concurrency cannot be better; all levels are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.backend import Events, Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Measurement, Outcome, Sample
from mlcd.planners.serve.llm.next_concurrency import between, is_over, without_steps_between
from mlcd.planners.serve.llm.nouns import Engine, EngineLoad, LanguageModel, Prompts, Stream
from mlcd.planners.serve.llm.sweep import Steps, SweepProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Level, Served, ServingTask, Window, service_of
from mlcd.planners.serve.service_level import at_best_level, certifies, decide, keeps, value

OUT, STARTUP_S = 10, 30.0
LAUNCH = Launch("run-1", Configuration(Offer("here", 3.6, 1, 1), 1), Purpose.PROBE, 1.0, 600.0, 1)


def job_of(*caps: Cap) -> Job:
    language = LanguageModel(Engine("vllm"), prompts=Prompts(output_tokens=OUT))
    return Job("m", 1.0, ask=ServingTask(ModelFacts("m"), caps, counted=Counted.TOKENS, language=language))


@dataclass
class Sweeps:
    """Plays a sweep in which a token takes 10 ms with one request at once, and `slope` more for each other one."""

    sweep: tuple[int, ...] = (1, 2, 4, 8, 16)
    slope: float = 0.001
    fails_from: int = 1_000
    crash: Ended | None = None
    torn_down: bool = False

    def run(self, job: Job, launch: Launch) -> Events:
        try:
            yield from self._events()
        finally:
            self.torn_down = True

    def _events(self) -> Iterator[Event]:
        now_s, tokens = STARTUP_S, 0.0
        for at_once in self.sweep:
            if at_once >= self.fails_from:
                if self.crash is not None:
                    yield self.crash
                    return
                yield Sample(now_s, tokens, evidence=Window(failures=1, error="HTTP 429", concurrency=at_once))
                continue
            tpot_s = 0.010 + self.slope * (at_once - 1)
            stream = Stream(5 * tpot_s, 5 * tpot_s + (OUT - 1) * tpot_s, OUT, (tpot_s,) * (OUT - 1), 8)
            told = EngineLoad(running=at_once, kv_cache=at_once / 20, preemptions=0.0)
            for _ in range(12):
                now_s, tokens = now_s + stream.latency_s, tokens + OUT * at_once
                window = Window(streams=(stream,) * at_once, concurrency=at_once, peak_gb=1.0, engine=told)
                yield Sample(now_s, tokens, evidence=window)

    def reclaim(self, label: str) -> None:
        return None


def measured(backend: Sweeps, *caps: Cap) -> Measurement:
    done = SweepProfiler(backend, Steps(tight=None)).measure(job_of(*caps), LAUNCH)
    assert backend.torn_down
    return done


def levels_of(done: Measurement) -> list[int]:
    assert isinstance(done.evidence, Served)
    return [level.concurrency for level in done.evidence.levels]


def test_without_caps_the_whole_sweep_is_made_and_the_fastest_level_counts():
    done = measured(Sweeps())
    assert levels_of(done) == [1, 2, 4, 8, 16]
    assert done.rate == pytest.approx(16 * OUT / (14 * 0.025))
    assert done.evidence.figures[Figure.TPOT_P50] == pytest.approx(0.025)
    assert done.startup_s == pytest.approx(STARTUP_S + 0.14)
    assert done.evidence.levels[-1].engine == EngineLoad(running=16, kv_cache=0.8, preemptions=0.0)


def test_the_level_that_keeps_the_caps_counts_and_the_others_are_kept():
    cap = Cap(Figure.TPOT_P95, 0.0135)
    done = measured(Sweeps(), cap)
    assert levels_of(done) == [1, 2, 4, 8], "16 at once is not tried: 8 has clearly broken the cap"
    assert done.rate == pytest.approx(4 * OUT / (14 * 0.013))
    assert keeps(job_of(cap), done)
    looser = Cap(Figure.TPOT_P95, 0.020)
    assert at_best_level(job_of(looser), done).rate == pytest.approx(8 * OUT / (14 * 0.017))


def test_the_sweep_ends_where_the_rate_no_longer_grows():
    done = measured(Sweeps(slope=0.01, sweep=(1, 2, 4, 8, 16)))
    assert levels_of(done) == [1, 2, 4]
    assert "no longer grows" in done.detail


def test_a_failing_level_does_not_end_the_sweep():
    done = measured(Sweeps(fails_from=8))
    assert done.outcome is Outcome.OK
    assert levels_of(done) == [1, 2, 4]
    assert done.evidence.failures == 2


def test_a_crash_in_the_middle_leaves_the_levels_before_it():
    done = measured(Sweeps(fails_from=4, crash=Ended(60.0, Outcome.OUT_OF_MEMORY, "no memory", "log")))
    assert done.outcome is Outcome.OK
    assert done.mistake is None
    assert levels_of(done) == [1, 2]


def test_a_crash_at_the_start_is_the_outcome():
    done = measured(Sweeps(fails_from=1, crash=Ended(9.0, Outcome.FAILED, "the engine crashed: x", "x")))
    assert (done.outcome, done.mistake, done.seconds) == (Outcome.FAILED, "the engine crashed: x", 9.0)


def test_requests_that_all_fail_are_a_mistake_of_the_job():
    done = measured(Sweeps(fails_from=1))
    assert done.mistake == "every request failed: HTTP 429"


def test_a_server_that_stalls_after_a_few_answers_is_not_asked_for_more_time():
    class Stalls(Sweeps):
        def _events(self) -> Iterator[Event]:
            few = Window(streams=(Stream(0.1, 0.2, OUT, (0.01,) * (OUT - 1), 8),), concurrency=4)
            yield Sample(STARTUP_S, OUT, evidence=few)
            yield from (Sample(STARTUP_S + i, OUT, evidence=Window(concurrency=4)) for i in range(1, 39))

    done = measured(Stalls())
    assert done.outcome is Outcome.FAILED
    assert done.detail == "the server stalled: nothing was answered in the last 38 s"


def test_an_engine_that_answers_nothing_in_time_says_so():
    class Silent(Sweeps):
        def _events(self) -> Iterator[Event]:
            yield Sample(STARTUP_S, 0.0, evidence=Window(concurrency=1))

    done = measured(Silent())
    assert done.outcome is Outcome.TIMED_OUT
    assert "no request was answered" in done.detail


def test_if_no_level_meets_the_caps_the_closest_is_named():
    job = job_of(Cap(Figure.TPOT_P95, 0.001))
    done = SweepProfiler(Sweeps(), Steps(tight=None)).measure(job, LAUNCH)
    from mlcd.core.configuration import Choice, Space
    from mlcd.core.history import History
    from mlcd.core.strategy import Finish

    decision = decide(job, Space((Choice(LAUNCH.configuration.offer),)), History((done,)), Finish("over"))
    assert decision.configuration is None
    assert decision.relaxations[0].easing.caps == (Cap(Figure.TPOT_P95, pytest.approx(0.010)),)


@given(
    st.lists(st.floats(1.0, 1e4), min_size=1, max_size=6),
    st.lists(st.floats(1e-3, 1.0), min_size=6, max_size=6),
    st.floats(1e-3, 1.0),
)
def test_a_sweep_never_ends_while_its_rate_grows_and_its_caps_are_kept(rates, tpots, cap_s):
    rates, tpots = sorted(rates), sorted(tpots)
    levels = [
        Level(2**i, rate * 1.05**i, 0.01, {Figure.TPOT_P95: tpot}, {Figure.TPOT_P95: tpot})
        for i, (rate, tpot) in enumerate(zip(rates, tpots, strict=False))
    ]
    service = job_of(Cap(Figure.TPOT_P95, cap_s)).ask
    over = is_over(service, levels)
    assert (over is None) == (levels[-1].figures[Figure.TPOT_P95] <= cap_s)


def level(requests: int, tpot_s: float, rate: float) -> Level:
    return Level(requests, rate, 0.01, {Figure.TPOT_P95: tpot_s}, {Figure.TPOT_P95: tpot_s})


def test_a_concurrency_between_the_last_within_the_cap_and_the_first_above_it_is_tried():
    service = job_of(Cap(Figure.TPOT_P95, 0.020)).ask
    went_up = [level(1, 0.010, 100), level(4, 0.015, 270), level(16, 0.030, 530)]
    assert between(service, went_up) == 8
    assert between(service, [*went_up, level(8, 0.019, 420)]) == 11
    assert between(service, [*went_up, level(8, 0.021, 380)]) == 6
    assert between(service, [*went_up, level(8, 0.019, 420), level(11, 0.022, 500)]) is None, "near enough"


def test_no_step_in_between_if_all_or_none_meet_the_cap_or_the_rate_does_not_grow():
    service = job_of(Cap(Figure.TPOT_P95, 0.020)).ask
    assert between(service, [level(1, 0.010, 100), level(16, 0.019, 840)]) is None
    assert between(service, [level(1, 0.021, 50), level(16, 0.040, 400)]) is None
    assert between(service, [level(4, 0.010, 400), level(16, 0.040, 400)]) is None
    assert between(service, []) is None


def test_a_sweep_goes_up_then_between_and_ends():
    """A token takes 10 ms with one request at once, and 1 ms more for each other one."""
    service, sweep, steps = job_of(Cap(Figure.TPOT_P95, 0.0195)).ask, (1, 4, 16, 64), Steps(tight=None)
    tried: dict[int, list[Sample]] = {}
    while (requests := steps.following(service, sweep, tried)) is not None:
        tried[requests] = [event for event in Sweeps((requests,)).run(job_of(), LAUNCH) if isinstance(event, Sample)]
    assert list(tried) == [1, 4, 16, 8, 11], "16 has clearly broken the cap: 64 is not tried"


def test_a_step_in_between_counts_and_the_sweep_says_why_it_ended():
    cap = Cap(Figure.TPOT_P95, 0.0195)
    done = measured(Sweeps((1, 4, 16, 8)), cap)
    assert levels_of(done) == [1, 4, 8, 16]
    assert done.rate == pytest.approx(8 * OUT / (14 * 0.017))
    assert "clearly broken at concurrency 16" in done.detail


def test_the_search_ignores_steps_in_between_when_it_compares_with_predictions():
    job = job_of(Cap(Figure.TPOT_P95, 0.0195))
    caps = service_of(job).caps
    done, swept = measured(Sweeps((1, 4, 16, 10)), *caps), measured(Sweeps((1, 4, 16)), *caps)
    assert value(job, without_steps_between(job, done)) == pytest.approx(value(job, swept))
    assert value(job, done) > 1.5 * value(job, swept)


def test_certified_means_met_at_the_unfavourable_bound():
    job = job_of(Cap(Figure.TTFT_P95, 1.0))
    done = SweepProfiler(Sweeps(), Steps(tight=None)).measure(job, LAUNCH)
    assert certifies(job, done) == (done.evidence.high[Figure.TTFT_P95] <= 1.0)
