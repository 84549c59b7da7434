"""The main loop: a strategy proposes a step, the ledger reserves its worst cost, a profiler measures, it is settled.

MLCD spends money nowhere else. `search` drives a search strategy to a decision; `launch` drives the strategy that runs
the decided job to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from mlcd.core import guarantee
from mlcd.core.alarm import warn_of_mismatch, with_alarm
from mlcd.core.backend import AlreadyGone, Launch, Profiler, ProfilerCanRejoin, Purpose
from mlcd.core.configuration import Space
from mlcd.core.decision import Decision
from mlcd.core.errors import BackendError, Interrupted
from mlcd.core.forecasts import remaining_job
from mlcd.core.guarantee import Guard, refusal
from mlcd.core.history import History, Refusal
from mlcd.core.job import Job
from mlcd.core.launching import (
    Closing,
    check_for_outage,
    close_launch,
    cut_short_measurement,
    measure_launch,
    reserve,
    saved_samples_after,
    with_metered_cost,
)
from mlcd.core.ledger import Account, Book, Decided, Ended, Refused, Resumed, Settled, Stopped, Voided, Waited
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.spot_probes import with_spot_markets
from mlcd.core.strategy import Apply, Finish, Probe, Round, Strategy, Wait

Stop = Callable[[], bool]
"""Whether the user wants to stop now."""
Decide = Callable[[Job, Space, History, Finish], Decision]
"""Makes the decision of a search from its history."""

STOP_POLL_S = 10.0
"""How often `stop` is called while a `Wait` step passes."""
SAME_MISTAKE_LIMIT = 2
"""Probes that fail with the same error in the job's own output before the search gives up."""


def never() -> bool:
    """The default `Stop`: nobody asks to stop."""
    return False


def best_within_limits(job: Job, space: Space, history: History, finish: Finish) -> Decision:
    """The best configuration certified within the limits, probes included: how most planners decide."""
    return guarantee.decide(job, space, history, finish.because, finish.configuration, finish.curve)


def drive(
    strategy: Strategy,
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    *,
    guard: Guard = refusal,
    stop: Stop = never,
) -> Finish:
    """Take steps until the strategy finishes. `stop` is called between steps; True interrupts, and nothing is lost.

    If `stop` itself raises `Interrupted`, no entry is written, so that another process can continue the run. Two failed
    launches in a row raise `Outage`: they say nothing about the configurations, so nothing is decided.
    """
    if not _rejoin(strategy, job, space, profiler, book, stop):
        reclaim(profiler, book)
    outages: list[BackendError] = []
    while True:
        history = book.history
        if (mistake := _common_mistake(history)) is not None:
            return Finish(f"the mistake is in the job, not in the machines: {mistake}")
        left = remaining_job(job, history)
        step = strategy.next_step(left, space, history)
        if isinstance(step, Finish):
            return step
        if stop():
            raise _interrupted(book)
        if isinstance(step, Wait):
            _wait(step, book, stop)
            continue
        if isinstance(step, Apply):
            step = _interruptible(with_alarm(step, left, history, book), job, stop)
            failed = _launch_all([step], left, space, profiler, book, stop)
            worked = not failed or book.account.history.saved_samples > history.saved_samples
            outages = check_for_outage(outages, failed, book, worked=worked)
            continue
        probes, refused = _allowed_round(step, left, space, history, guard)
        if refused is not None:
            book.write(Refused(probes[0].configuration, refused))
        else:
            failed = _launch_all(
                with_spot_markets(probes, left, space, history, guard), left, space, profiler, book, stop
            )
            outages = check_for_outage(outages, failed, book, worked=len(failed) < len(probes))


def search(
    strategy: Strategy,
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    *,
    guard: Guard = refusal,
    decide: Decide = best_within_limits,
    stop: Stop = never,
) -> Decision:
    """Probe until the strategy finishes, decide, and write the decision to the ledger."""
    finish = drive(strategy, job, space, profiler, book, guard=guard, stop=stop)
    history = book.account.history
    decision = conclude(finish, remaining_job(job, history), space, history, decide)
    book.write(Decided(decision))
    return decision


def first_probes(
    strategy: Strategy, job: Job, space: Space, history: History, guard: Guard = refusal
) -> tuple[Probe, ...] | Finish:
    """The probes that `drive` would launch first, or why there are none. Nothing is launched."""
    left = remaining_job(job, history)
    while True:
        step = strategy.next_step(left, space, history)
        if isinstance(step, Finish):
            return step
        if isinstance(step, Apply | Wait):
            raise ValueError("a strategy that runs the job probes nothing")
        probes, refused = _allowed_round(step, left, space, history, guard)
        if refused is None:
            return probes
        history = replace(history, refusals=(*history.refusals, Refusal(probes[0].configuration, refused)))


def _allowed_round(
    step: Probe | Round, left: Job, space: Space, history: History, guard: Guard
) -> tuple[tuple[Probe, ...], str | None]:
    """The first probes of a round that the guard allows at once, and None; if it allows none, the first and why not.

    A strategy lists its most wanted probes first.
    """
    probes = step.probes if isinstance(step, Round) else (step,)
    share = max(probe.share for probe in probes)
    while (refused := guard(left, space, history, [p.configuration for p in probes], share)) and len(probes) > 1:
        probes = probes[:-1]
    return probes, refused


def conclude(
    finish: Finish, left: Job, space: Space, history: History, decide: Decide = best_within_limits
) -> Decision:
    """The decision at the end of a search, for what is left of the job."""
    if finish.decision is not None:
        return finish.decision
    if finish.unproven or finish.done:  # unmeasured, or no work is left: nothing to certify
        return Decision(finish.configuration, finish.because, finish.done, curve=finish.curve, done=finish.done)
    return decide(left, space, history, finish)


def launch(
    strategy: Strategy, job: Job, space: Space, profiler: Profiler, book: Book, *, stop: Stop = never
) -> Measurement | None:
    """Run the job itself to its end and write how it ended; return the last launch, if any.

    A `Finish` that names a configuration means that the job has finished.
    """
    finish = drive(strategy, job, space, profiler, book, stop=stop)
    runs = book.account.history.runs
    book.write(Ended(finish.configuration is not None, finish.because))
    return runs[-1] if runs else None


def reclaim(profiler: Profiler, book: Book) -> None:
    """Close launches that a crash left open: tear their machines down, and settle exactly the time they were up."""
    left = book.account.open
    if not left:
        return
    book.write(Resumed("a launch was open when the last process ended"))
    closing: list[Settled | Voided] = []
    for reserved in left:
        order = reserved.launch
        seconds = profiler.reclaim(order.label)
        if seconds is None:
            closing.append(Voided(order, "the process died; no machine was ordered and nothing is billed"))
        else:
            what = "were already gone" if isinstance(seconds, AlreadyGone) else "were torn down afterwards"
            detail, saved = (
                f"the process died; its machines {what}",
                saved_samples_after(book.account.job, order, profiler),
            )
            ended = cut_short_measurement(order, profiler, float(seconds), Outcome.INTERRUPTED, detail, saved)
            closing.append(Settled(order, with_metered_cost(ended, book.account.job, order, profiler)))
    book.write(*closing)


def still_running(profiler: Profiler, account: Account) -> Launch | None:
    """The launch of the decided job that a dead process left running, or None."""
    if account.decision is None or len(account.open) != 1 or not isinstance(profiler, ProfilerCanRejoin):
        return None
    order = account.open[0].launch
    return order if order.purpose is Purpose.RUN and profiler.still_runs(order.label) else None


def _rejoin(strategy: Strategy, job: Job, space: Space, profiler: Profiler, book: Book, stop: Stop) -> bool:
    """Follow a launch of the job that a dead process left running, until it ends; False if there is none.

    The same history gives the same step as before the crash, and so the same `watch`. The launch keeps its reservation
    and is settled once, for all the time that it was up.
    """
    account = book.account
    history = replace(account.history, elapsed_s=account.reserved_at_s)  # when the launch was decided
    left = remaining_job(job, history)
    if not isinstance(profiler, ProfilerCanRejoin) or stop() or (order := still_running(profiler, account)) is None:
        return False
    step = strategy.next_step(left, space, history)
    if not isinstance(step, Apply) or step.configuration != order.configuration:
        return False
    book.write(Resumed(f"{order.configuration} still runs the job; it is followed again"))
    watch = _interruptible(with_alarm(step, left, history, book), job, stop).watch
    measure = partial(profiler.rejoin, left, order, watch)
    result = close_launch(left, order, profiler, measure, lambda: profiler.reclaim(order.label) or 0.0)
    check_for_outage([], _settle([result], book, stop), book)
    return True


def _common_mistake(history: History) -> str | None:
    """The error that the job's own output reported in all of the first probes; None if they differ or one ran."""
    mistakes = [m.mistake for m in history.measurements if m.mistake is not None]
    ran = any(m.ok or m.outcome is Outcome.OK for m in history.measurements)
    if ran or len(mistakes) < SAME_MISTAKE_LIMIT or len(set(mistakes)) > 1:
        return None
    return mistakes[0]


def _launch_all(
    steps: Sequence[Probe | Apply], job: Job, space: Space, profiler: Profiler, book: Book, stop: Stop
) -> list[BackendError]:
    """Reserve the worst case of each step, launch them together, and settle; return the errors of failed launches.

    Whatever happens, every launch is settled or voided, unless its machines are still up. All reservations are written
    at once, and so are all settlements: a crash never leaves half a round.
    """
    reserved = [reserve(step, i, job, space, book) for i, step in enumerate(steps)]
    book.write(*reserved)
    orders = [entry.launch for entry in reserved]
    results = book.clock.run_concurrently(
        [
            partial(measure_launch, job, order, step, profiler, book.clock)
            for order, step in zip(orders, steps, strict=True)
        ]
    )
    return _settle(results, book, stop)


def _wait(step: Wait, book: Book, stop: Stop) -> None:
    """Let the time pass, polling `stop`."""
    book.write(Waited(step.seconds, step.because))
    until_s = book.clock.elapsed_s() + step.seconds
    while (left_s := until_s - book.clock.elapsed_s()) > 0:
        book.clock.wait(min(left_s, STOP_POLL_S))
        if stop():
            raise _interrupted(book)


def _settle(results: Sequence[Closing], book: Book, stop: Stop) -> list[BackendError]:
    """Write how these launches ended; return the backend's errors, and raise any other error."""
    book.write(*(entry for entry, _ in results if entry is not None))
    warn_of_mismatch([entry.measurement for entry, _ in results if isinstance(entry, Settled)], book)
    failed = [error for _, error in results if isinstance(error, BackendError)]
    for _, error in results:
        if isinstance(error, KeyboardInterrupt):
            stop()  # raises if the run is to be left for another process
            raise _interrupted(book) from error
        if error is not None and not isinstance(error, BackendError):
            raise error
    return failed


def _interruptible(step: Apply, job: Job, stop: Stop) -> Apply:
    """The step, which also ends when the user stops the run, unless the job saves no checkpoints to continue from."""
    if not job.checkpoints:
        return step
    within = step.watch

    def watch(so_far: Measurement) -> Outcome | None:
        if _is_stop_requested(stop):
            return Outcome.INTERRUPTED
        return within(so_far) if within is not None else None

    return replace(step, watch=watch)


def _is_stop_requested(stop: Stop) -> bool:
    """Whether to end in the middle of a step. If `stop` raises, it raises again after the step."""
    try:
        return stop()
    except Interrupted:
        return True


def _interrupted(book: Book) -> Interrupted:
    book.write(Stopped("interrupted by the user"))
    return Interrupted(f"interrupted; everything measured is kept. Go on with: mlcd resume {book.run}")
