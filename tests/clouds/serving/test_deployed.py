"""A deployment in the ledger: never beyond the budget, settled however it ends, measured again if it gets slower."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlcd_fixtures.engine_runs import CHAT, chat_job, chat_space, show_sweep
from mlcd_fixtures.serving_runs import InOrder, Shown

from mlcd.clouds.serving.deployed import Running, command_here, deploy
from mlcd.clouds.serving.histograms import Histograms, read_histograms
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.drive import search
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Ledger, Reserved, Settled, Started
from mlcd.core.measurement import Ended, Measurement, Outcome
from mlcd.core.place import Cloud
from mlcd.core.runs.run import Run
from mlcd.planners.serve import service_level
from mlcd.planners.serve.nouns import Figure, Knob, Served, served_by, service_of

SPACE = chat_space()


@dataclass
class FakeEngine:
    """Answers `rate` requests a second from its start on, a share of them too late; gone after `lives_s`."""

    clock: VirtualClock
    late: float = 0.0
    rate: float = 1.0
    lives_s: float = float("inf")
    fails: str = ""
    started: list[dict[str, Knob]] = field(default_factory=list)
    interrupted_at_s: float = float("inf")
    open: int = 0

    @contextmanager
    def __call__(self, job: Job, launch: Launch, knobs: Mapping[str, Knob]) -> Iterator[Running | Ended]:
        self.started.append(dict(knobs))
        began_s = self.clock.elapsed_s()
        self.clock.wait(20.0)
        self.open += 1
        try:
            if self.fails:
                yield Ended(20.0, Outcome.FAILED, self.fails)
                return
            yield Running("http://here:8000", lambda: self._alive(began_s), lambda: self._read(began_s))
        finally:
            self.open -= 1

    def _alive(self, began_s: float) -> bool:
        if self.clock.elapsed_s() >= self.interrupted_at_s:
            raise KeyboardInterrupt
        return self.clock.elapsed_s() - began_s < self.lives_s

    def _read(self, began_s: float) -> Histograms | None:
        came = self.rate * (self.clock.elapsed_s() - began_s)
        lines = []
        for name in ("time_to_first_token", "request_time_per_output_token"):
            for le, count in (("0.01", came * (1 - self.late)), ("1.0", came * (1 - self.late)), ("+Inf", came)):
                lines.append(f'vllm:{name}_seconds_bucket{{le="{le}"}} {count}')
        return read_histograms("\n".join(lines))


def decided(budget_usd: float | None = 50.0, show: Callable[[Configuration], Measurement] = show_sweep) -> Run:
    """A run that has tried the first two deployments and decided."""
    clock, ledger = VirtualClock(), Ledger(None)
    job = replace(CHAT, goal=replace(CHAT.goal, budget_usd=budget_usd))
    book = ledger.begin(job.name, clock, Started(job, SPACE, job.on, Provenance.LIVE, "0.1.0"))
    profiler = Shown(clock, show)
    search(
        InOrder(SPACE.configurations[:2]),
        job,
        SPACE,
        profiler,
        book,
        guard=service_level.refusal,
        decide=service_level.decide,
    )
    return Run(ledger, book, job, Cloud(SPACE, None, profiler, clock))  # type: ignore[arg-type]


def engine_of(run: Run, **how: float | str) -> FakeEngine:
    assert isinstance(run.cloud.clock, VirtualClock)
    return FakeEngine(run.cloud.clock, **how)  # type: ignore[arg-type]


def deployed(run: Run, engine: FakeEngine) -> tuple[str, list[str]]:
    said: list[str] = []
    why = deploy(run, engine, said.append)
    assert engine.open == 0
    assert not run.book.account.open
    return why, said


def launches(account: Account) -> tuple[Measurement, ...]:
    return account.history.runs


def test_it_ends_when_the_budget_is_used_up_and_is_paid_by_the_second() -> None:
    run = decided()
    engine = engine_of(run)
    why, said = deployed(run, engine)
    assert said == ["ready: http://here:8000"]
    assert why == "its budget is used up"
    history, (launched,) = run.book.history, launches(run.book.account)
    again_usd = SPACE.worst_probe(launched.configuration)[1]
    assert history.spent_usd == pytest.approx(50.0 - again_usd, abs=0.01)
    assert launched.usd == pytest.approx(launched.configuration.usd(launched.seconds))
    assert run.book.account.status == "stopped"


def test_clients_name_a_model_in_a_folder_as_they_do_with_the_exported_files(tmp_path: Path) -> None:
    job = chat_job(path=str(tmp_path))
    arguments = command_here(job, {"tp": 2}, "127.0.0.1", 8_001).arguments
    assert arguments[arguments.index("--served-model-name") + 1] == service_of(job).model.name
    assert str(tmp_path) in arguments
    downloaded = command_here(chat_job(path="meta/llama"), {"tp": 2}, "127.0.0.1", 8_001).arguments
    assert "--served-model-name" not in downloaded  # its name is what the engine downloads it by


def test_the_engine_admits_what_was_measured() -> None:
    run = decided()
    engine = engine_of(run, lives_s=600.0)
    assert deployed(run, engine)[0] == "the engine is gone"
    assert engine.started[0]["sequences"] == 32
    assert launches(run.book.account)[0].outcome is Outcome.FAILED


def test_overload_is_no_reason_to_measure_again() -> None:
    run = decided()
    _, said = deployed(run, engine_of(run, late=0.3, rate=50.0, lives_s=3_600.0))
    assert "50 requests a second came, and one replica takes" in said[1]
    assert f"mlcd replicas {run.name}" in said[1]
    assert len(run.book.history.measurements) == 2
    assert run.book.account.warnings[0] == said[1]


def test_a_slower_engine_is_measured_again_and_the_new_decision_is_deployed() -> None:
    slow = False

    def show(place: Configuration) -> Measurement:
        m = show_sweep(place)
        served = served_by(m)
        if not slow:
            return m
        levels = tuple(
            replace(each, figures=_times(each.figures, 1.6), high=_times(each.high, 1.6)) for each in served.levels
        )
        return replace(m, evidence=Served(served.figures, served.high, levels=levels))

    run = decided(show=show)
    engine = engine_of(run, late=0.3, rate=1.0, lives_s=7_200.0)
    slow = True
    _, said = deployed(run, engine)
    assert "it is measured again" in said[1]
    assert said[2].startswith("measured again: ")
    assert said[3] == "ready: http://here:8000"
    assert "it is measured again" not in said[4]  # once, not for ever
    assert len(run.book.history.measurements) == 3
    assert [int(knobs["sequences"]) for knobs in engine.started] == [32, 16]


def _times(figures: Mapping[Figure, float], factor: float) -> dict[Figure, float]:
    return {figure: factor * at for figure, at in figures.items()}


def test_a_deployment_that_no_longer_meets_the_caps_is_not_restarted() -> None:
    calls = 0

    def show(place: Configuration) -> Measurement:
        nonlocal calls
        calls += 1
        return show_sweep(place) if calls <= 2 else replace(show_sweep(place), outcome=Outcome.OUT_OF_MEMORY)

    run = decided(show=show)
    engine = engine_of(run, late=0.3, rate=1.0, lives_s=7_200.0)
    why, said = deployed(run, engine)
    assert len(engine.started) in (1, 2)
    assert any("measured again" in words for words in (*said, why))


def test_an_engine_that_does_not_start_is_paid_for_and_says_why() -> None:
    run = decided()
    why, said = deployed(run, engine_of(run, fails="no room for the weights"))
    assert why == "no room for the weights"
    assert said == []
    assert launches(run.book.account)[0].seconds == 20.0


def test_an_interrupted_deployment_is_settled() -> None:
    run = decided()
    engine = engine_of(run)
    engine.interrupted_at_s = run.book.clock.elapsed_s() + 1_000
    with pytest.raises(KeyboardInterrupt):
        deploy(run, engine, lambda words: None)
    assert engine.open == 0
    assert not run.book.account.open
    assert launches(run.book.account)[0].outcome is Outcome.INTERRUPTED
    assert launches(run.book.account)[0].seconds == pytest.approx(1_000, abs=2)


def test_it_stops_when_it_is_asked_to() -> None:
    run = decided()
    engine = engine_of(run)
    end_s = run.book.clock.elapsed_s() + 500
    assert deploy(run, engine, lambda words: None, lambda: run.book.clock.elapsed_s() > end_s) == "the user stopped it"


def test_without_money_left_nothing_is_started() -> None:
    run = decided(budget_usd=0.145)
    engine = engine_of(run)
    with pytest.raises(WrongState, match=f"raise it with mlcd deploy {run.name} --budget USD"):
        deploy(run, engine, lambda words: None)
    assert engine.started == []
    assert not run.book.account.open


@settings(deadline=None, max_examples=20)
@given(st.floats(0.145, 2.0), st.floats(0.0, 1.0), st.floats(0.1, 100.0), st.floats(60.0, 5e3))
def test_no_deployment_goes_beyond_the_budget(budget: float, late: float, rate: float, lives_s: float) -> None:
    run = decided(budget_usd=budget)
    try:
        deployed(run, engine_of(run, late=late, rate=rate, lives_s=lives_s))
    except WrongState:
        return
    assert run.book.history.spent_usd <= budget + 1e-6 + 2 * 6.0 / 3_600  # a look comes a second late at the most
    entries = [line.entry for line in run.ledger.lines(run.name)]
    for entry in entries:
        if isinstance(entry, Reserved) and entry.launch.purpose is Purpose.RUN:
            settled = [e for e in entries if isinstance(e, Settled) and e.launch.label == entry.launch.label]
            assert settled[0].measurement.usd <= entry.worst_usd + 6.0 / 3_600
