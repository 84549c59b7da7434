"""One launch in the ledger: reserve its worst case before it, and close it after it.

Whatever happens to a launch, it is settled at what its machines cost, or voided if none were ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from mlcd.core.backend import Launch, Profiler, Purpose, ReportsBilledTime, ReportsSavedWork, ReportsUsage
from mlcd.core.clock import Clock
from mlcd.core.configuration import Space
from mlcd.core.errors import BackendError, NoAccess, NoCapacity, NothingOrdered, Outage, StillUp
from mlcd.core.guarantee import left_usd, lifetime_s
from mlcd.core.job import Job
from mlcd.core.ledger import Book, Reserved, Settled, Stopped, Voided
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Probe

Closing = tuple[Settled | Voided | None, BaseException | None]
"""The entry that closes a launch, None while its machines are still up; and the error, if there was one."""
MOST_FAILED_LAUNCHES = 2
"""Failed launches in a row after which the run is stopped: the place cannot be used."""


def reserve(step: Probe | Apply, place: int, job: Job, space: Space, book: Book) -> Reserved:
    """The launch of a step, and the most seconds and dollars it can take. `place`: its position in the round."""
    account, configuration = book.account, step.configuration
    rented = configuration.rented(step.market)
    bound_s: float | None
    if isinstance(step, Probe):
        purpose, samples, whole_s = Purpose.PROBE, job.work_samples, space.probe_time.seconds(configuration.nodes)
        bound_s = step.share * whole_s
    else:
        purpose, samples, whole_s = Purpose.RUN, step.samples, None
        bounds = [lifetime_s(job.goal, book.history, rented), step.most_s]
        bound_s = min((bound for bound in bounds if bound is not None), default=None)
    foreseen = account.decision.forecast if account.decision is not None else None
    worst_s = bound_s if bound_s is not None else foreseen.worst_seconds if foreseen is not None else 0.0
    worst_usd, most_usd = rented.worst_usd(worst_s), None
    if configuration.billing.metered:
        worst_usd = most_usd = min(worst_usd, left_usd(job.goal, account.history))
    order = Launch(
        label=f"{book.run}-{account.orders + place + 1}",  # unique, even if earlier orders were voided
        configuration=configuration,
        purpose=purpose,
        samples=samples,
        lifetime_s=bound_s,
        ordinal=account.launches + place,
        round=account.rounds,
        saved_samples=account.history.saved_samples,
        work=step.work,
        market=step.market,
        most_usd=most_usd,
        whole_s=whole_s if isinstance(step, Probe) and step.share < 1 else None,
    )
    return Reserved(order, step.because, worst_usd, worst_s)


def measure_launch(job: Job, order: Launch, step: Probe | Apply, profiler: Profiler, clock: Clock) -> Closing:
    """Launch, measure, and make the closing entry."""
    before_s = clock.elapsed_s()
    look, watch = (step.look, None) if isinstance(step, Probe) else (None, step.watch)
    measure = partial(profiler.measure, job, order, look, watch)
    return close_launch(job, order, profiler, measure, lambda: clock.elapsed_s() - before_s)


def close_launch(
    job: Job, order: Launch, profiler: Profiler, measure: Callable[[], Measurement], took_s: Callable[[], float]
) -> Closing:
    """The closing entry of a launch. `measure` runs it; `took_s`: how long the machines were up, once they are gone."""

    def ended_early(outcome: Outcome, detail: str) -> Settled:
        saved = saved_samples_after(job, order, profiler)
        return Settled(order, with_later_use(cut_short_measurement(order, profiler, took_s(), outcome, detail, saved)))

    def with_later_use(measurement: Measurement) -> Measurement:
        """Metered usage may continue after the launch, as running functions of a cloud cannot be ended."""
        if order.most_usd is None or measurement.metered or not isinstance(profiler, ReportsUsage):
            return measurement
        try:
            held_s = profiler.reclaim(order.label)
        except BackendError:
            held_s = inf if order.lifetime_s is None else order.lifetime_s
        most_usd = 0.0 if held_s is None else order.bill_usd(held_s)
        return with_metered_cost(replace(measurement, usd=max(measurement.usd, most_usd)), job, order, profiler)

    try:
        measurement = measure()
        saved = max(measurement.saved_samples, saved_samples_after(job, order, profiler))  # it may save while it ends
        billed = with_later_use(_billed(order, profiler, measurement, took_s()))
        return Settled(order, replace(billed, saved_samples=saved)), None
    except NoCapacity as error:  # says something about this configuration, not about the place
        free = Measurement(order.configuration, Outcome.LAUNCH_FAILED, took_s(), 0.0, detail=str(error))
        return Settled(order, free), None
    except NothingOrdered as error:
        return Voided(order, f"nothing was ordered and nothing is billed: {error}"), error
    except StillUp as error:
        return None, error
    except BackendError as error:
        return ended_early(Outcome.LAUNCH_FAILED, str(error)), error
    except BaseException as error:
        # The profiler has torn the machines down already: settle their time; the caller raises the error.
        return ended_early(Outcome.INTERRUPTED, type(error).__name__), error


def cut_short_measurement(
    order: Launch, profiler: Profiler, seconds: float, outcome: Outcome, detail: str, saved: float = 0.0
) -> Measurement:
    """The measurement of a launch that ended early: no rate, but a cost."""
    billed_s = _billed_s(order, profiler)
    usd = order.bill_usd(seconds if billed_s is None else billed_s)
    return Measurement(order.configuration, outcome, seconds, usd, detail=detail, saved_samples=saved)


def with_metered_cost(ended: Measurement, job: Job, order: Launch, profiler: Profiler) -> Measurement:
    """The measurement of a reclaimed launch with its metered cost, if the profiler knows it."""
    use = profiler.usage(job, order.label) if isinstance(profiler, ReportsUsage) else None
    if use is None:
        return ended
    if not use.known:
        return replace(ended, usd=min(ended.usd, use.usd))
    return replace(ended, usd=use.usd, metered=True, detail=f"{ended.detail}; what they used was metered")


def saved_samples_after(job: Job, order: Launch, profiler: Profiler) -> float:
    """The samples in the checkpoint after a launch, even if MLCD did not see its end; 0 if unknown."""
    if not job.checkpoints or not isinstance(profiler, ReportsSavedWork):
        return 0.0
    more = profiler.saved(order.label)
    return order.saved_samples + more if more else 0.0


def _billed(order: Launch, profiler: Profiler, measurement: Measurement, seconds: float) -> Measurement:
    """The measurement with the time that its machines were up; tearing real ones down takes time too."""
    if order.most_usd is not None:  # metered: the profiler has counted the cost
        return replace(measurement, seconds=max(seconds, measurement.seconds))
    billed_s = _billed_s(order, profiler)
    if billed_s is None and abs(seconds - measurement.seconds) < 1e-3:  # equal up to rounding, as with a virtual clock
        return measurement
    return replace(measurement, seconds=seconds, usd=order.bill_usd(seconds if billed_s is None else billed_s))


def _billed_s(order: Launch, profiler: Profiler) -> float | None:
    """The billed time according to the cloud, if it tells."""
    return profiler.billed_s(order) if isinstance(profiler, ReportsBilledTime) else None


def check_for_outage(
    before: Sequence[BackendError], failed: Sequence[BackendError], book: Book, *, worked: bool = False
) -> list[BackendError]:
    """The errors of failed launches in a row so far. `Outage` if another launch would be useless.

    `before`: those before the last step; `failed`: those of it. `worked`: one of its launches worked, or saved work.
    """
    in_a_row = [] if worked else [*before, *failed]
    permanent = next((error for error in failed if isinstance(error, NoAccess | StillUp)), None)
    if not failed or (permanent is None and len(in_a_row) < MOST_FAILED_LAUNCHES):
        return in_a_row
    because = str(permanent or failed[-1])
    book.write(Stopped(because))
    free = all(isinstance(error, NothingOrdered) for error in (*in_a_row, *failed))
    kept = "Nothing was ordered, and nothing is billed for it" if free else "Everything measured is kept"
    raise Outage(f"{because}. {kept}. Go on with: mlcd resume {book.run}") from failed[-1]
