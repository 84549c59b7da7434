"""Check MLCD's promises about elastic searches and runs, from a ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mlcd.core.backend import Purpose
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision, Prediction
from mlcd.core.drive import launch, search
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Ledger, Line, Reserved, Settled, Started
from mlcd.core.measurement import Outcome
from mlcd.core.place import Cloud
from mlcd.core.planner import planner_of
from mlcd.planners.scale.feasibility import local_batch, machine_of
from mlcd.planners.scale.job_model import launch_at_target
from mlcd.planners.scale.nouns import Mode, ScalingTask
from mlcd.planners.scale.search import MOST_PROBES, PROBES_PER_OTHER_TYPE
from mlcd.planners.scale.steer import MOST_SETBACKS
from mlcd.testing.promises import check_books, check_decision, check_repeatable


def scale(job: Job, cloud: Cloud, learned: Mapping[str, Any] | None = None) -> tuple[list[Line], Decision]:
    """The whole path of `mlcd scale` on a ledger in memory: search, decide and, if anything was chosen, run."""
    ledger = Ledger(None)
    started = Started(job, cloud.space, "test", cloud.provenance, "test", (), learned)
    book = ledger.begin(job.name, cloud.clock, started)
    decision = search(planner_of(job).search_strategy(job), job, cloud.space, cloud.profiler, book)
    if decision.configuration is not None:
        strategy = planner_of(job).run_strategy(job, decision, book.account.searched)
        launch(strategy, job, cloud.space, cloud.profiler, book)
    assert ledger.account(book.run) == book.account, "the replayed account differs from the live one"
    return ledger.lines(book.run), decision


def account_of(lines: Sequence[Line]) -> Account:
    """The account of a run after these lines."""
    return Account.replay((line.entry, line.elapsed_s) for line in lines)


def check_elastic_promises(job: Job, lines: Sequence[Line], *, steady: bool = True) -> None:
    """All promises at once. `steady`: noise stays at its stated level, and no launch fails by chance."""
    assert isinstance(job.ask, ScalingTask)
    account = account_of(lines)
    decision = account.decision
    check_books(job.goal, lines)
    check_repeatable(planner_of(job).search_strategy(job), job, lines)
    check_probes(job, lines)
    check_saved_work(lines)
    assert account.history.setbacks <= MOST_SETBACKS, "launched too often"
    if decision is None:
        return
    check_curve(decision.curve)
    if job.ask.mode is Mode.NONE:
        assert not decision.certified, "certified without a measurement"
        assert all(each.relative for each in decision.curve), "predicted a time without a measurement"
        return
    if launch_at_target(job, account.searched) is None:
        check_decision(job, lines, decision, best=False)
        measured = {m.configuration for m in account.searched.good}
        assert decision.configuration is None or decision.configuration in measured, "chosen, but not measured"
    if steady and decision.certified:
        check_certified_run(job, account)


def check_probes(job: Job, lines: Sequence[Line]) -> None:
    """Nothing is probed twice except after bad luck, nor above a batch that ran out of memory; and probes are few."""
    assert isinstance(job.ask, ScalingTask)
    answered: set[Configuration] = set()
    walls: dict[object, float] = {}
    good: Counter[object] = Counter()
    for entry in (line.entry for line in lines):
        if isinstance(entry, Reserved) and entry.launch.purpose is Purpose.PROBE:
            where = entry.launch.configuration
            assert job.ask.mode is not Mode.NONE, "probed with --search none"
            assert where not in answered, f"{where} was probed twice"
            assert local_batch(job, where) < walls.get(machine_of(where), float("inf")), f"{where} cannot fit"
        if isinstance(entry, Settled) and entry.launch.purpose is Purpose.PROBE:
            seen, where = entry.measurement, entry.launch.configuration
            if not seen.outcome.is_bad_luck:
                answered.add(where)
            if seen.outcome is Outcome.OUT_OF_MEMORY:
                walls[machine_of(where)] = min(walls.get(machine_of(where), float("inf")), local_batch(job, where))
            good[machine_of(where)] += seen.ok
    if job.ask.mode is Mode.PARTIAL:
        types = len({machine_of(c) for c in account_of(lines).space.configurations})
        assert good.total() <= MOST_PROBES + PROBES_PER_OTHER_TYPE * (types - 1), f"too many probes: {good}"


def check_saved_work(lines: Sequence[Line]) -> None:
    """Every launch continues from all the work saved before it, and never loses any."""
    saved = 0.0
    for entry in (line.entry for line in lines):
        if isinstance(entry, Reserved):
            assert entry.launch.saved_samples == saved, "work was lost between launches"
        if isinstance(entry, Settled):
            assert entry.measurement.saved_samples >= saved, "work was lost in a launch"
            saved = entry.measurement.saved_samples


def check_curve(curve: Sequence[Prediction]) -> None:
    """Each interval contains its prediction, the Pareto boundary is right, and exactly one point on it is the knee."""
    for each in curve:
        assert 0 < each.low_s <= each.seconds <= each.high_s, f"{each.configuration}: an interval without its middle"
        beaten = any(_beats(other, each) for other in curve)
        assert each.on_boundary is not beaten, f"{each.configuration}: wrongly on or off the boundary"
    knees = [each for each in curve if each.knee]
    assert len(knees) == (1 if curve else 0), "not one knee"
    assert all(each.on_boundary for each in knees), "a knee off the boundary"


def check_certified_run(job: Job, account: Account) -> None:
    """What was certified came to its end: the target, or the end of the work."""
    history = account.history
    assert account.ended is not None, "certified, but not run"
    if launch_at_target(job, account.searched) is not None:
        assert not history.runs, "launched again, with nothing left to do"
        assert account.ended.finished
        return
    assert history.runs, "certified, but not run"
    assert history.runs[-1].outcome is Outcome.OK, f"certified, but ended {history.runs[-1].outcome}"
    assert account.ended.finished is (job.target is None or launch_at_target(job, history) is not None)


def _beats(one: Prediction, other: Prediction) -> bool:
    """As fast and as cheap, and better in one of them."""
    return (
        one.seconds <= other.seconds and one.usd <= other.usd and (one.seconds < other.seconds or one.usd < other.usd)
    )
