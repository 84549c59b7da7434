"""Trials on engines: started with their knobs, swept, stopped; and the diagnosis of failures."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from mlcd_fixtures.fake_engine import fake_vllm
from mlcd_fixtures.openai_server import Timing as FakeTiming
from mlcd_fixtures.openai_server import in_thread
from serving_contract import clock, launch

from mlcd.clouds.engines.trial import Engines
from mlcd.clouds.local import teardown
from mlcd.clouds.serving.trial import Timing
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.llm.sweep import Steps, SweepProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Knob, Served, ServingTask

TIMING = Timing(startup_s=30.0, every_s=0.1, timeout_s=5.0)
STEPS = Steps(tight=0.5)
PROMPTS = Prompts(input_tokens=8, output_tokens=8)
VLLM = Engine("vllm")
pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{fake_vllm(tmp_path / 'bin')}:{os.environ['PATH']}")


def job_of(engine: Engine, sweep: tuple[int, ...] = (1, 4), caps: tuple[Cap, ...] = ()) -> Job:
    language = LanguageModel(engine, prompts=PROMPTS, sweep=sweep)
    task = ServingTask(ModelFacts("tiny"), caps, counted=Counted.TOKENS, path="tiny", language=language)
    return Job("tiny", 1.0, ask=task)


def measured(home: Path, job: Job, lifetime_s: float = 20.0, **knobs: Knob) -> Measurement:
    backend = Engines(home, clock(), TIMING, STEPS)
    done = SweepProfiler(backend, STEPS).measure(job, launch(lifetime_s=lifetime_s, **knobs))
    assert backend.leftovers() == set()
    return done


def test_an_engine_is_started_swept_and_ended(tmp_path):
    done = measured(tmp_path, job_of(VLLM), precision="fp32", sequences=8)
    assert done.outcome is Outcome.OK, done
    assert isinstance(done.evidence, Served)
    assert [level.concurrency for level in done.evidence.levels] == [1, 4]
    one, four = done.evidence.levels
    assert four.rate > 1.5 * one.rate
    assert done.rate == four.rate
    assert one.figures[Figure.TPOT_P50] > 0.003
    assert four.engine is not None
    assert 0 < (four.engine.running or 0) <= 4
    assert four.engine.preemptions == 0
    assert done.seconds < 20


def test_the_sweep_ends_where_a_cap_is_clearly_broken(tmp_path):
    job = job_of(VLLM, (1, 2, 64), caps=(Cap(Figure.TPOT_P50, 0.0005),))
    done = measured(tmp_path, job)
    assert done.outcome is Outcome.OK
    assert isinstance(done.evidence, Served)
    assert [level.concurrency for level in done.evidence.levels] == [1]
    assert "tpot_p50 <= 0.5 ms is clearly broken at concurrency 1" in done.detail


def test_an_engine_that_crashes_at_its_start_says_why_in_its_own_words(tmp_path):
    crash = "ValueError: the tokenizer is missing"
    first = measured(tmp_path, job_of(VLLM), crash=crash)
    assert first.outcome is Outcome.FAILED
    assert first.detail == f"the engine crashed: {crash}"
    assert crash in first.log
    again = measured(tmp_path, job_of(VLLM), crash=crash, sequences=4)
    assert again.mistake == first.mistake, "another process, and still the same mistake"


def test_a_crash_for_lack_of_memory_is_told_apart(tmp_path):
    done = measured(tmp_path, job_of(VLLM), crash="ValueError: No available memory for the cache blocks.")
    assert done.outcome is Outcome.OUT_OF_MEMORY


def test_a_command_of_ones_own_gets_the_knobs_that_it_names(tmp_path):
    command = "vllm serve {model} --port {port} --max-num-seqs {sequences}"
    done = measured(tmp_path, job_of(Engine(command=command), (1,)), sequences=2)
    assert done.outcome is Outcome.OK, done


def test_an_engine_that_runs_already_is_loaded_and_left_alone(tmp_path):
    with in_thread(FakeTiming(step_s=0.002)) as url:
        done = measured(tmp_path, job_of(Engine(url=url), (1, 2)))
        assert done.outcome is Outcome.OK, done
        Engines(tmp_path, clock()).check(job_of(Engine(url=url)).ask)


@pytest.mark.parametrize(
    "bad, words",
    [
        ("garbage", "not consist of server-sent events"),
        ("stall", "the server stalled"),
        ("close", "closed"),
        ("end", "ended early"),
        ("too_many", "HTTP 429: too many requests"),
        ("no_usage", "usage"),
    ],
)
def test_an_endpoint_that_answers_wrongly_is_refused_in_one_line(tmp_path, bad, words):
    with in_thread(FakeTiming(step_s=0.001, bad=bad)) as url, pytest.raises(UserError, match=words) as refused:
        Engines(tmp_path, clock()).check(job_of(Engine(url=url)).ask, stall_s=0.5)
    assert "\n" not in str(refused.value)


def test_an_engine_that_fails_every_request_is_the_same_mistake_everywhere(tmp_path):
    done = [measured(tmp_path, job_of(VLLM), bad="too_many", sequences=n) for n in (2, 4)]
    assert {each.outcome for each in done} == {Outcome.FAILED}
    assert len({each.mistake for each in done}) == 1
    assert "429" in done[0].detail


def test_an_engine_that_ends_in_the_middle_of_a_sweep_leaves_what_it_has_shown(tmp_path):
    backend = Engines(tmp_path, clock(), TIMING, STEPS)
    profiler = SweepProfiler(backend, STEPS)
    killed = []

    def kill(job, order, sample):
        if sample.evidence.concurrency == 4 and not killed:
            folder = backend.launches.find(order.label)
            for process in teardown.processes_of(teardown.mark_of(folder)):
                os.kill(process, signal.SIGKILL)
            killed.append(sample)

    done = replace(profiler, progress=kill).measure(job_of(VLLM), launch(lifetime_s=20.0))
    assert killed
    assert done.outcome is Outcome.OK
    assert [level.concurrency for level in done.evidence.levels] == [1]


def test_what_already_answers_at_the_address_is_not_taken_for_the_engine(tmp_path):
    with in_thread(FakeTiming()) as url:
        events = Engines(tmp_path, clock()).run(job_of(replace(VLLM, url=url)), launch())
        with pytest.raises(UserError, match="a server is already running there"):
            next(events)
