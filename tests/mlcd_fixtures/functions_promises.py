"""Check MLCD's promises about jobs on functions, from a ledger."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlcd.clouds.functions.simulated import SimulatedFunctions
from mlcd.core.backend import Launch, Purpose
from mlcd.core.drive import launch, search
from mlcd.core.forecasts import remaining_job
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Ended, Ledger, Line, Reserved, Settled, Started, Voided
from mlcd.core.ledger.entries import to_json
from mlcd.core.place import Cloud
from mlcd.core.planner import planner_of
from mlcd.core.strategy import Apply, Finish, Probe, Round
from mlcd.planners.functions.nouns import TrainEpochs, evidence_of, work_of
from mlcd.testing.promises import ROUNDING, check_books
from mlcd_fixtures.functions import FunctionsWorld


def see_functions_through(
    job: Job, cloud: Cloud, ledger: Ledger, listen: Callable[[Line], None] | None = None
) -> list[Line]:
    """Calibrate, plan and run, continuing from the state in the ledger."""
    if ledger.runs():
        book = ledger.book("last", cloud.clock, listen)
    else:
        started = Started(job, cloud.space, job.on, cloud.provenance, "test")
        book = ledger.begin(job.name, cloud.clock, started, listen)
    if book.account.decision is None:
        search(planner_of(job).search_strategy(job), job, cloud.space, cloud.profiler, book)
    decision = book.account.decision
    if decision is not None and decision.configuration is not None and book.account.ended is None:
        launch(
            planner_of(job).run_strategy(job, decision, book.account.searched), job, cloud.space, cloud.profiler, book
        )
    return ledger.lines(book.run)


def account_of(lines: Sequence[Line]) -> Account:
    """The account of a run after these lines."""
    return Account.replay((line.entry, line.elapsed_s) for line in lines)


def story(lines: Sequence[Line]) -> list[str]:
    """The facts that must not depend on crashes: measurements, costs, decision and end. NaN equals NaN."""
    told = []
    for entry in (line.entry for line in lines):
        if isinstance(entry, Settled):
            told.append(repr(entry.measurement))
        elif not isinstance(entry, Reserved | Voided) and entry.kind != "resumed":
            told.append(to_json(entry))
    return told


def check_functions_promises(world: FunctionsWorld, lines: Sequence[Line]) -> None:
    """All promises at once."""
    check_books(world.job.goal, lines)
    check_sums(lines)
    check_steps(world.job, lines)
    check_bills(world, lines)
    check_epochs(lines)
    if world.serverless.tuning is not None:
        check_halving(world, lines)
    elif (ended := account_of(lines).ended) is not None and ended.finished:
        losses = [epoch.loss for run in account_of(lines).history.runs for epoch in evidence_of(run).epochs]
        assert world.job.target is not None
        assert world.job.target.reached(losses[-1]), "finished, and not at the target"


def check_sums(lines: Sequence[Line]) -> None:
    """The spending is the sum of settled costs, every launch is closed, and every end has a reason."""
    account = account_of(lines)
    settled = [line.entry.measurement for line in lines if isinstance(line.entry, Settled)]
    assert math.isclose(account.history.spent_usd, math.fsum(m.usd for m in settled), rel_tol=ROUNDING, abs_tol=1e-15)
    assert not account.open, "a launch was left open"
    assert all(m.usd >= 0 and m.seconds >= 0 for m in settled)
    metered = [m for m in settled if m.metered]
    assert all(
        math.isclose(m.usd, math.fsum(e.usd for e in evidence_of(m).epochs), rel_tol=ROUNDING) for m in metered
    ), "a wrong sum"
    assert all(line.entry.because for line in lines if isinstance(line.entry, Ended | Reserved)), "without a reason"


def check_steps(job: Job, lines: Sequence[Line]) -> None:
    """The same history gives the same step, whatever came before: here histories are replayed in reverse."""
    whole = account_of(lines)
    search_by = planner_of(job).search_strategy(job)
    run_by = (
        planner_of(job).run_strategy(job, whole.decision, whole.searched)
        if whole.decision and whole.decision.configuration
        else None
    )
    for i, line in reversed(list(enumerate(lines))):
        if not isinstance(line.entry, Reserved | Ended):
            continue
        past = account_of(lines[:i])
        if past.open:
            continue
        strategy = search_by if past.decision is None else run_by
        assert strategy is not None, "something was run that nobody decided"
        again = strategy.next_step(remaining_job(job, past.history), past.space, past.history)
        assert not isinstance(again, Round)
        assert again.because == line.entry.because, "another reason than before"
        if isinstance(line.entry, Ended):
            assert isinstance(again, Finish), "ended, and now it would go on"
            continue
        assert isinstance(again, Probe if past.decision is None else Apply), "another step than before"
        assert again.configuration == line.entry.launch.configuration, "another configuration than before"
        assert isinstance(again, Finish) or again.work == line.entry.launch.work, "other work than before"


def billed_usd(backend: SimulatedFunctions, job: Job, launch: Launch, until_s: float = math.inf) -> float:
    """The platform's bill for a training launch if it ends then."""
    schedule = backend._schedule(job, launch, work_of(launch) or TrainEpochs(0))
    for attempt in schedule:
        if attempt.end_s >= until_s:
            break
    over_s = until_s if schedule.broken is None else min(until_s, schedule.broken.end_s)
    return math.fsum(each.usd(over_s) for each in schedule.begun)


def check_bills(world: FunctionsWorld, lines: Sequence[Line]) -> None:
    """The platform never bills more than the ledger has."""
    backend = world.cloud().backend
    assert isinstance(backend, SimulatedFunctions)
    for entry in (line.entry for line in lines):
        if isinstance(entry, Settled) and entry.launch.work is not None and world.serverless.tuning is not None:
            billed = billed_usd(backend, world.job, entry.launch, entry.measurement.seconds)
            assert billed <= entry.measurement.usd * (1 + ROUNDING), "billed for more than was settled"


def check_epochs(lines: Sequence[Line]) -> None:
    """Every epoch of every trial is done once, in order, and by a launch that was for it."""
    done: dict[int, int] = {}
    for entry in (line.entry for line in lines):
        if not isinstance(entry, Settled) or entry.launch.purpose is Purpose.PROBE:
            continue
        work = work_of(entry.launch)
        assert work is not None, "a launch of the job itself with nothing to do"
        for trial in work.trials:
            assert done.get(trial, 0) == work.done, f"trial {trial} does not go on where it was"
        for epoch in evidence_of(entry.measurement).epochs:
            assert epoch.trial in work.trials, "an epoch of a trial that was not asked for"
            assert epoch.number == done.get(epoch.trial, 0) + 1, f"trial {epoch.trial}: an epoch twice, or left out"
            done[epoch.trial] = epoch.number


def check_halving(world: FunctionsWorld, lines: Sequence[Line]) -> None:
    """Exactly the trials with the lowest losses at the end of a stage continue."""
    tuning, account = world.serverless.tuning, account_of(lines)
    assert tuning is not None
    losses = {(e.trial, e.number): e.loss for run in account.history.runs for e in evidence_of(run).epochs}
    reached = max((number for _, number in losses), default=0)
    alive, done = set(range(tuning.trials)), 0
    for place, stage in enumerate(tuning.stages):
        after = done + stage.epochs
        trained = {trial for trial, number in losses if done < number <= after}
        assert trained <= alive, f"stage {place + 1}: trials went on that had lost"
        if reached <= after and not {(trial, after) for trial in alive} <= set(losses):
            assert account.ended is None or not account.ended.finished, "finished, with trials left out"
            return
        kept = tuning.stages[place + 1].trials if place + 1 < len(tuning.stages) else 1
        order = sorted(alive, key=lambda trial: (_badness(losses[trial, after]), trial))
        alive, done = set(order[:kept]), after
    assert account.ended is not None


def _badness(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf
