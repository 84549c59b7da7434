"""The loop: a strategy proposes, the ledger reserves, a profiler measures, the ledger settles.

Everything MLCD spends, it spends in `drive`. `search` drives an exploring strategy to a decision,
`launch` drives a steering one to the job's end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlcd.backend import Launch, Purpose
from mlcd.configuration import Configuration, Space
from mlcd.decision import Decision
from mlcd.errors import BackendError, Interrupted
from mlcd.guarantee import decide, lifetime_s, refusal
from mlcd.history import History
from mlcd.job import Job
from mlcd.ledger import Book, Decided, Ended, Refused, Reserved, Resumed, Settled, Stopped, Voided
from mlcd.measurement import Measurement, Outcome
from mlcd.profiler import Profiler
from mlcd.strategy import Apply, Finish, Probe, Strategy

Guard = Callable[[Job, Space, History, Configuration], str | None]
"""Why a probe is not allowed, or None."""


def no_guard(job: Job, space: Space, history: History, configuration: Configuration) -> None:
    """No protection at all, for measuring what a method does by itself. Only benchmarks use it."""


def drive(
    strategy: Strategy,
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    *,
    guard: Guard = refusal,
    stop: Callable[[], bool] = lambda: False,
) -> Finish:
    """Take steps until the strategy finishes. `stop` is asked between steps; True interrupts, losing nothing."""
    reclaim(profiler, book)
    while True:
        history = book.account.history
        step = strategy.next_step(job, space, history)
        if isinstance(step, Finish):
            return step
        if stop():
            raise _interrupted(book)
        refused = guard(job, space, history, step.configuration) if isinstance(step, Probe) else None
        if refused is not None:
            book.write(Refused(step.configuration, refused))
            continue
        _take(step, job, space, profiler, book)


def search(
    strategy: Strategy,
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    *,
    guard: Guard = refusal,
    stop: Callable[[], bool] = lambda: False,
) -> Decision:
    """Probe until the strategy has seen enough, decide, and write the decision down."""
    finish = drive(strategy, job, space, profiler, book, guard=guard, stop=stop)
    decision = decide(job, space, book.account.history, finish.because, finish.configuration)
    book.write(Decided(decision))
    return decision


def launch(
    strategy: Strategy,
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Measurement | None:
    """Run the job itself to its end, and write down how that went; the last launch, if there was one."""
    finish = drive(strategy, job, space, profiler, book, stop=stop)
    runs = book.account.history.runs
    finished = bool(runs) and runs[-1].outcome is Outcome.OK
    book.write(Ended(finished, finish.because))
    return runs[-1] if runs else None


def reclaim(profiler: Profiler, book: Book) -> None:
    """Close a launch that a crash left open: tear its machines down, then pay for exactly what they were up."""
    left = book.account.open
    if left is None:
        return
    seconds = profiler.reclaim(left.launch.label)
    book.write(Resumed("a launch was open when the last process ended"))
    if seconds is None:
        book.write(Voided(left.launch, "the process died; no machine was left and nothing is billed"))
        return
    configuration = left.launch.configuration
    lost = Measurement(
        configuration,
        Outcome.INTERRUPTED,
        seconds,
        configuration.usd(seconds),
        detail="the process died; its machines were found and torn down",
    )
    book.write(Settled(left.launch, lost))


def _take(step: Probe | Apply, job: Job, space: Space, profiler: Profiler, book: Book) -> None:
    """Reserve the worst case, launch, settle what it came to; whatever happens, the books are closed."""
    order, worst_s, worst_usd = _order(step, job, space, book)
    book.write(Reserved(order, step.because, worst_usd, worst_s))
    before_s = book.clock.elapsed_s()
    try:
        measurement = profiler.measure(job, order)
    except BackendError as error:
        book.write(Settled(order, _cut_short(order, book.clock.elapsed_s() - before_s, Outcome.FAILED, str(error))))
    except BaseException as error:
        # The profiler has torn the machines down on its way out: pay for what they were up, then tell.
        used_s = book.clock.elapsed_s() - before_s
        book.write(Settled(order, _cut_short(order, used_s, Outcome.INTERRUPTED, type(error).__name__)))
        if isinstance(error, KeyboardInterrupt):
            raise _interrupted(book) from error
        raise
    else:
        book.write(Settled(order, measurement))


def _order(step: Probe | Apply, job: Job, space: Space, book: Book) -> tuple[Launch, float, float]:
    """The launch that a step asks for, and the most seconds and dollars it can take."""
    account = book.account
    label = f"{book.run}-{account.launches + 1}"
    order = Launch(label, step.configuration, Purpose.PROBE, job.work_samples, None, account.launches)
    if isinstance(step, Probe):
        worst_s, worst_usd = space.worst_probe(step.configuration)
        return replace(order, lifetime_s=worst_s), worst_s, worst_usd
    bound_s = lifetime_s(job.goal, account.history, step.configuration)
    order = replace(order, purpose=Purpose.RUN, samples=step.samples, lifetime_s=bound_s)
    decision = account.decision
    foreseen = decision.forecast if decision is not None else None
    worst_s = bound_s if bound_s is not None else foreseen.worst_seconds if foreseen is not None else 0.0
    return order, worst_s, step.configuration.usd(worst_s)


def _cut_short(order: Launch, seconds: float, outcome: Outcome, detail: str) -> Measurement:
    return Measurement(order.configuration, outcome, seconds, order.configuration.usd(seconds), detail=detail)


def _interrupted(book: Book) -> Interrupted:
    book.write(Stopped("interrupted by the user"))
    return Interrupted(f"interrupted; everything measured is kept. Go on with: mlcd resume {book.run}")
