"""The loop: a strategy proposes, the ledger reserves, a profiler measures, the ledger settles.

Everything MLCD spends, it spends in `drive`. `search` drives an exploring strategy to a decision,
`launch` drives a steering one to the job's end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from mlcd import service_level
from mlcd.alarm import RunAlarm
from mlcd.backend import Launch, Purpose, RemembersWork
from mlcd.clock import Clock
from mlcd.configuration import Configuration, Space
from mlcd.decision import Decision
from mlcd.errors import BackendError, Interrupted, MlcdError, NoCapacity, NothingOrdered, StillUp
from mlcd.guarantee import decide, left_usd, lifetime_s, refusal, remaining
from mlcd.history import History, Refusal
from mlcd.job import Job
from mlcd.ledger import Book, Decided, Ended, Refused, Reserved, Resumed, Settled, Stopped, Voided, Warned
from mlcd.measurement import Measurement, Outcome
from mlcd.outages import check_place
from mlcd.profiler import Profiler, RejoinsLaunches
from mlcd.serverless import MOST_ATTEMPTS
from mlcd.strategy import Apply, Finish, Probe, Round, Strategy

Guard = Callable[[Job, Space, History, Sequence[Configuration]], str | None]
"""Why probing these at once is not allowed, or None."""


SAME_MISTAKES = 2
"""Probes that end with the same error of the job's own before the search is given up."""


def no_guard(job: Job, space: Space, history: History, configurations: Sequence[Configuration]) -> None:
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
    """Take steps until the strategy finishes. `stop` is asked between steps; True interrupts, losing nothing.

    If it raises `Interrupted` itself, the run is left as it stands, for another process to go on with. A place that
    fails two launches in a row raises `Outage`: that says nothing about the configurations, so nothing is concluded.
    """
    if not _rejoin(strategy, job, space, profiler, book, stop):
        reclaim(profiler, book)
    outages: list[BackendError] = []
    while True:
        history = book.account.history
        if (mistake := _mistake(history)) is not None:
            return Finish(f"the mistake is in the job, not in the machines: {mistake}")
        left = remaining(job, history)
        step = strategy.next_step(left, space, history)
        if isinstance(step, Finish):
            return step
        if stop():
            raise _interrupted(book)
        if isinstance(step, Apply):
            step = _interruptible(_with_alarm(step, left, book), job, stop)
            failed = _take([step], left, space, profiler, book, stop)
            outages = check_place([*outages, *failed] if failed else [], book)
            continue
        probes, refused = _permitted(step, left, space, history, guard)
        if refused is not None:
            book.write(Refused(probes[0].configuration, refused))
        else:
            failed = _take(probes, left, space, profiler, book, stop)
            outages = check_place([*outages, *failed] if len(failed) == len(probes) else [], book)


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
    history = book.account.history
    decision = conclude(finish, remaining(job, history), space, history)
    book.write(Decided(decision))
    return decision


def first_probes(
    strategy: Strategy, job: Job, space: Space, history: History, guard: Guard = refusal
) -> tuple[Probe, ...] | Finish:
    """What `drive` would probe first, or why nothing; nothing is launched."""
    left = remaining(job, history)
    while True:
        step = strategy.next_step(left, space, history)
        if isinstance(step, Finish):
            return step
        if isinstance(step, Apply):
            raise ValueError("a strategy that runs the job probes nothing")
        probes, refused = _permitted(step, left, space, history, guard)
        if refused is None:
            return probes
        history = replace(history, refusals=(*history.refusals, Refusal(probes[0].configuration, refused)))


def _permitted(
    step: Probe | Round, left: Job, space: Space, history: History, guard: Guard
) -> tuple[tuple[Probe, ...], str | None]:
    """Of a round that is too much at once, the first ones: they were wanted most. If not even one is, why."""
    probes = step.probes if isinstance(step, Round) else (step,)
    while (refused := guard(left, space, history, [p.configuration for p in probes])) and len(probes) > 1:
        probes = probes[:-1]
    return probes, refused


def conclude(finish: Finish, left: Job, space: Space, history: History) -> Decision:
    """The decision that a search has come to, for what is left of the job."""
    if finish.decision is not None:
        return finish.decision
    if finish.unproven or finish.done:  # nothing was measured, or nothing is left: there is nothing to certify
        return Decision(finish.configuration, finish.because, finish.done, curve=finish.curve, done=finish.done)
    if left.service is not None:
        return service_level.decide(left, space, history, finish.because)
    return decide(left, space, history, finish.because, finish.configuration, finish.curve)


def launch(
    strategy: Strategy,
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    *,
    stop: Callable[[], bool] = lambda: False,
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
    closed: list[Settled | Voided] = []
    for reserved in left:
        order = reserved.launch
        seconds = profiler.reclaim(order.label)
        if seconds is None:
            closed.append(Voided(order, "the process died; no machine was left and nothing is billed"))
        else:
            detail = "the process died; its machines were found and torn down"
            saved = _saved(book.account.job, order, profiler)
            closed.append(Settled(order, _cut_short(order, seconds, Outcome.INTERRUPTED, detail, saved)))
    book.write(*closed)


def _rejoin(
    strategy: Strategy, job: Job, space: Space, profiler: Profiler, book: Book, stop: Callable[[], bool]
) -> bool:
    """Go on with a launch of the job itself that still runs, though nobody watches it; False: there is none.

    The same history gives the same step as before the crash: that is how it is watched. It stays the launch that was
    reserved, and is paid for once, for all the time that it was up.
    """
    account, left = book.account, remaining(job, book.account.history)
    if account.decision is None or len(account.open) != 1 or not isinstance(profiler, RejoinsLaunches) or stop():
        return False
    order = account.open[0].launch
    if order.purpose is not Purpose.RUN or not profiler.still_runs(order.label):
        return False
    step = strategy.next_step(left, space, account.history)
    if not isinstance(step, Apply) or step.configuration != order.configuration:
        return False
    book.write(Resumed(f"{order.configuration} still runs the job; it is followed again"))
    watch = _interruptible(_with_alarm(step, left, book), job, stop).watch
    measure = partial(profiler.rejoin, left, order, watch)
    result = _closed(left, order, profiler, measure, lambda: profiler.reclaim(order.label) or 0.0)
    check_place(_settle([result], book, stop), book)
    return True


def _mistake(history: History) -> str | None:
    """What the job itself gets wrong: its own output says so, the same way on each of the first machines."""
    mistakes = [m.mistake for m in history.measurements if m.mistake is not None]
    ran = history.good or any(m.calibrated is not None for m in history.measurements)
    if ran or len(mistakes) < SAME_MISTAKES or len(set(mistakes)) > 1:
        return None
    return mistakes[0]


def _take(
    steps: Sequence[Probe | Apply],
    job: Job,
    space: Space,
    profiler: Profiler,
    book: Book,
    stop: Callable[[], bool],
) -> list[BackendError]:
    """Reserve the worst case of each, launch, settle what they came to; the launches that the place has failed.

    Whatever happens, the books are closed, but for machines that are still up. Reserves are written together, and so
    are settlements: a crash in between never leaves half a round.
    """
    reserved = [_reserve(step, i, job, space, book) for i, step in enumerate(steps)]
    book.write(*reserved)
    orders = [entry.launch for entry in reserved]
    results = book.clock.together(
        [partial(_measure, job, order, step, profiler, book.clock) for order, step in zip(orders, steps, strict=True)]
    )
    return _settle(results, book, stop)


def _settle(
    results: Sequence[tuple[Settled | Voided | None, BaseException | None]], book: Book, stop: Callable[[], bool]
) -> list[BackendError]:
    """Close the books of these launches; those that the place has failed. What else went wrong is raised."""
    book.write(*(closed for closed, _ in results if closed is not None))
    _warn_of_mismatch([closed.measurement for closed, _ in results if isinstance(closed, Settled)], book)
    failed = [error for _, error in results if isinstance(error, BackendError)]
    for _, error in results:
        if isinstance(error, KeyboardInterrupt):
            stop()  # raises where the run is to be left as it stands
            raise _interrupted(book) from error
        if error is not None and not isinstance(error, BackendError):
            raise error
    return failed


def _measure(
    job: Job, order: Launch, step: Probe | Apply, profiler: Profiler, clock: Clock
) -> tuple[Settled | Voided | None, BaseException | None]:
    """How a launch is closed in the books, None if its machines are still up; and what went wrong, if anything did."""
    before_s = clock.elapsed_s()
    look, watch = (step.look, None) if isinstance(step, Probe) else (None, step.watch)
    measure = partial(profiler.measure, job, order, look, watch)
    return _closed(job, order, profiler, measure, lambda: clock.elapsed_s() - before_s)


def _closed(
    job: Job, order: Launch, profiler: Profiler, measure: Callable[[], Measurement], took_s: Callable[[], float]
) -> tuple[Settled | Voided | None, BaseException | None]:
    """The same of what `measure` comes to. `took_s`: how long the machines were up, once they are gone."""

    def cut_short(outcome: Outcome, detail: str) -> Settled:
        saved = _saved(job, order, profiler)
        return Settled(order, _cut_short(order, took_s(), outcome, detail, saved))

    try:
        measurement = measure()
        return Settled(order, _billed(order, measurement, took_s())), None
    except NoCapacity as error:  # an answer about this configuration, and no fault of the place
        free = Measurement(order.configuration, Outcome.LAUNCH_FAILED, took_s(), 0.0, detail=str(error))
        return Settled(order, free), None
    except NothingOrdered as error:
        return Voided(order, f"nothing was ordered and nothing is billed: {error}"), error
    except StillUp as error:
        return None, error
    except BackendError as error:
        return cut_short(Outcome.LAUNCH_FAILED, str(error)), error
    except BaseException as error:
        # The profiler has torn the machines down on its way out: pay for what they were up, then tell.
        return cut_short(Outcome.INTERRUPTED, type(error).__name__), error


def _warn_of_mismatch(measurements: Sequence[Measurement], book: Book) -> None:
    """Tell that what probes report is not what `work` states, once: every forecast counts on `work`."""
    telling = [
        f"the job {m.mismatch.words}"
        for m in measurements
        if m.mismatch is not None and m.outcome is not Outcome.FAILED
    ]
    if telling and not book.account.warnings and not book.account.history.runs:
        book.write(Warned(telling[0]))


def _with_alarm(step: Apply, job: Job, book: Book) -> Apply:
    """The step, with a warning in the books as soon as the run is slower than certified, or beyond its work."""
    if job.serverless is not None:
        return step
    history, within = book.account.history, step.watch
    certified = next((m for m in history.good if m.configuration == step.configuration), None)
    alarm = RunAlarm(replace(job, work_samples=step.samples), history, certified)

    def watch(so_far: Measurement) -> Outcome | None:
        if (warning := alarm(so_far)) is not None:
            with suppress(MlcdError):  # a ledger that is away for a moment is no reason to end the run
                book.write(Warned(warning))
        return within(so_far) if within is not None else None

    return replace(step, watch=watch)


def _interruptible(step: Apply, job: Job, stop: Callable[[], bool]) -> Apply:
    """The step, ended when the user asks for it. Work that nobody has saved is not thrown away: that is waited for."""
    if not job.checkpoints:
        return step
    within = step.watch

    def watch(so_far: Measurement) -> Outcome | None:
        if _is_asked(stop):
            return Outcome.INTERRUPTED
        return within(so_far) if within is not None else None

    return replace(step, watch=watch)


def _is_asked(stop: Callable[[], bool]) -> bool:
    """Whether to end in the middle of a step; how the run is left is told after it."""
    try:
        return stop()
    except Interrupted:
        return True


def _reserve(step: Probe | Apply, place: int, job: Job, space: Space, book: Book) -> Reserved:
    """The launch that a step asks for, and the most seconds and dollars it can take."""
    account, configuration = book.account, step.configuration
    order = Launch(
        label=f"{book.run}-{account.orders + place + 1}",  # of every order its own, whatever became of those before
        configuration=configuration,
        purpose=Purpose.PROBE if isinstance(step, Probe) else Purpose.RUN,
        samples=job.work_samples if isinstance(step, Probe) else step.samples,
        lifetime_s=None,
        ordinal=account.launches + place,
        round=account.rounds,
        saved_samples=account.history.saved_samples,
        noise=isinstance(step, Probe) and step.noise,
        work=step.work,
    )
    if isinstance(step, Probe):
        bound_s: float | None = space.probe_time.seconds(configuration.nodes)
    else:
        bounds = [lifetime_s(job.goal, account.history, configuration), step.most_s]
        bound_s = min((bound for bound in bounds if bound is not None), default=None)
    foreseen = account.decision.forecast if account.decision is not None else None
    worst_s = bound_s if bound_s is not None else foreseen.worst_seconds if foreseen is not None else 0.0
    worst_usd = configuration.usd(worst_s)
    if configuration.allocation is None:
        return Reserved(replace(order, lifetime_s=bound_s), step.because, worst_usd, worst_s)
    worst_usd += (MOST_ATTEMPTS - 1) * configuration.surcharge.usd
    most_usd = min(worst_usd, left_usd(job.goal, account.history))
    return Reserved(replace(order, lifetime_s=bound_s, most_usd=most_usd), step.because, most_usd, worst_s)


def _billed(order: Launch, measurement: Measurement, seconds: float) -> Measurement:
    """The measurement, paid for as long as its machines were up: tearing real ones down takes time too."""
    if order.most_usd is not None:  # functions are billed by what they use, as their profiler has counted
        return replace(measurement, seconds=max(seconds, measurement.seconds))
    if abs(seconds - measurement.seconds) < 1e-3:  # a virtual clock agrees, but for rounding
        return measurement
    return replace(measurement, seconds=seconds, usd=order.bill_usd(seconds))


def _saved(job: Job, order: Launch, profiler: Profiler) -> float:
    """What the checkpoint holds after a launch whose end nobody saw; without that, its work would be counted again."""
    if not job.checkpoints or not isinstance(profiler, RemembersWork):
        return 0.0
    more = profiler.saved(order.label)
    return order.saved_samples + more if more else 0.0


def _cut_short(order: Launch, seconds: float, outcome: Outcome, detail: str, saved: float = 0.0) -> Measurement:
    usd = order.bill_usd(seconds)
    return Measurement(order.configuration, outcome, seconds, usd, detail=detail, saved_samples=saved)


def _interrupted(book: Book) -> Interrupted:
    book.write(Stopped("interrupted by the user"))
    return Interrupted(f"interrupted; everything measured is kept. Go on with: mlcd resume {book.run}")
