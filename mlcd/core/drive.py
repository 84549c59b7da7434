"""The loop: a strategy proposes, the ledger reserves, a profiler measures, the ledger settles.

Everything MLCD spends, it spends in `drive`. `search` drives an exploring strategy to a decision,
`launch` drives a steering one to the job's end.
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
"""Asked whether to end now."""
Decide = Callable[[Job, Space, History, Finish], Decision]
"""What a search has come to, from what it has measured."""

STOP_POLL_S = 10.0
"""How often `stop` is asked while nothing is rented."""
SAME_MISTAKE_LIMIT = 2
"""Probes that end with the same error of the job's own before the search is given up."""


def never() -> bool:
    """Nobody asks to stop."""
    return False


def best_within_limits(job: Job, space: Space, history: History, finish: Finish) -> Decision:
    """The best that probes and final run together allow within the limits: what most planners decide by."""
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
    """Take steps until the strategy finishes. `stop` is asked between steps; True interrupts, losing nothing.

    If it raises `Interrupted` itself, the run is left as it stands, for another process to go on with. A place that
    fails two launches in a row raises `Outage`: that says nothing about the configurations, so nothing is concluded.
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
    """Probe until the strategy has seen enough, decide, and write the decision down."""
    finish = drive(strategy, job, space, profiler, book, guard=guard, stop=stop)
    history = book.account.history
    decision = conclude(finish, remaining_job(job, history), space, history, decide)
    book.write(Decided(decision))
    return decision


def first_probes(
    strategy: Strategy, job: Job, space: Space, history: History, guard: Guard = refusal
) -> tuple[Probe, ...] | Finish:
    """What `drive` would probe first, or why nothing; nothing is launched."""
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
    """Of a round that is too much at once, the first ones: they were wanted most. If not even one is, why."""
    probes = step.probes if isinstance(step, Round) else (step,)
    share = max(probe.share for probe in probes)
    while (refused := guard(left, space, history, [p.configuration for p in probes], share)) and len(probes) > 1:
        probes = probes[:-1]
    return probes, refused


def conclude(
    finish: Finish, left: Job, space: Space, history: History, decide: Decide = best_within_limits
) -> Decision:
    """The decision that a search has come to, for what is left of the job."""
    if finish.decision is not None:
        return finish.decision
    if finish.unproven or finish.done:  # nothing was measured, or nothing is left: there is nothing to certify
        return Decision(finish.configuration, finish.because, finish.done, curve=finish.curve, done=finish.done)
    return decide(left, space, history, finish)


def launch(
    strategy: Strategy, job: Job, space: Space, profiler: Profiler, book: Book, *, stop: Stop = never
) -> Measurement | None:
    """Run the job itself to its end, and write down how that went; the last launch, if there was one.

    A strategy that names where the job ended says that it ended well.
    """
    finish = drive(strategy, job, space, profiler, book, stop=stop)
    runs = book.account.history.runs
    book.write(Ended(finish.configuration is not None, finish.because))
    return runs[-1] if runs else None


def reclaim(profiler: Profiler, book: Book) -> None:
    """Close launches that a crash left open: tear their machines down, then pay for exactly what they were up."""
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
    """The launch of the decided job that still runs, though nobody watches it; None: there is none."""
    if account.decision is None or len(account.open) != 1 or not isinstance(profiler, ProfilerCanRejoin):
        return None
    order = account.open[0].launch
    return order if order.purpose is Purpose.RUN and profiler.still_runs(order.label) else None


def _rejoin(strategy: Strategy, job: Job, space: Space, profiler: Profiler, book: Book, stop: Stop) -> bool:
    """Go on with a launch of the job itself that still runs, though nobody watches it; False: there is none.

    The same history gives the same step as before the crash: that is how it is watched. It stays the launch that was
    reserved, and is paid for once, for all the time that it was up.
    """
    account = book.account
    history = replace(account.history, elapsed_s=account.reserved_at_s)  # its own time is counted from there
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
    """What the job itself gets wrong: its own output says so, the same way on each of the first machines."""
    mistakes = [m.mistake for m in history.measurements if m.mistake is not None]
    ran = any(m.ok or m.outcome is Outcome.OK for m in history.measurements)
    if ran or len(mistakes) < SAME_MISTAKE_LIMIT or len(set(mistakes)) > 1:
        return None
    return mistakes[0]


def _launch_all(
    steps: Sequence[Probe | Apply], job: Job, space: Space, profiler: Profiler, book: Book, stop: Stop
) -> list[BackendError]:
    """Reserve the worst case of each, launch, settle what they came to; the launches that the place has failed.

    Whatever happens, the books are closed, but for machines that are still up. Reserves are written together, and so
    are settlements: a crash in between never leaves half a round.
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
    """Let the time pass; whether to end is asked every few seconds."""
    book.write(Waited(step.seconds, step.because))
    until_s = book.clock.elapsed_s() + step.seconds
    while (left_s := until_s - book.clock.elapsed_s()) > 0:
        book.clock.wait(min(left_s, STOP_POLL_S))
        if stop():
            raise _interrupted(book)


def _settle(results: Sequence[Closing], book: Book, stop: Stop) -> list[BackendError]:
    """Close the books of these launches; those that the place has failed. What else went wrong is raised."""
    book.write(*(entry for entry, _ in results if entry is not None))
    warn_of_mismatch([entry.measurement for entry, _ in results if isinstance(entry, Settled)], book)
    failed = [error for _, error in results if isinstance(error, BackendError)]
    for _, error in results:
        if isinstance(error, KeyboardInterrupt):
            stop()  # raises where the run is to be left as it stands
            raise _interrupted(book) from error
        if error is not None and not isinstance(error, BackendError):
            raise error
    return failed


def _interruptible(step: Apply, job: Job, stop: Stop) -> Apply:
    """The step, ended when the user asks for it. Work that nobody has saved is not thrown away: that is waited for."""
    if not job.checkpoints:
        return step
    within = step.watch

    def watch(so_far: Measurement) -> Outcome | None:
        if _is_stop_requested(stop):
            return Outcome.INTERRUPTED
        return within(so_far) if within is not None else None

    return replace(step, watch=watch)


def _is_stop_requested(stop: Stop) -> bool:
    """Whether to end in the middle of a step; how the run is left is told after it."""
    try:
        return stop()
    except Interrupted:
        return True


def _interrupted(book: Book) -> Interrupted:
    book.write(Stopped("interrupted by the user"))
    return Interrupted(f"interrupted; everything measured is kept. Go on with: mlcd resume {book.run}")
