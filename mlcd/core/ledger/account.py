"""The state of a run, replayed from its entries, and the rules that every entry must keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

import mlcd.core.ledger.entries as kinds
from mlcd.core.backend import Provenance, Purpose
from mlcd.core.configuration import Space
from mlcd.core.decision import Decision
from mlcd.core.history import History, Refusal, Rental
from mlcd.core.job import Job
from mlcd.core.launch_spread import NO_REPEATS
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.payload import Ask


class Status(StrEnum):
    """The status of a run."""

    SEARCHING = "searching"
    DECIDED = "decided"
    INFEASIBLE = "infeasible"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class BrokenBooks(RuntimeError):
    """An entry contradicts earlier ones: a bug, never a user's mistake."""


@dataclass(frozen=True)
class Account:
    """The immutable state of one run; `after` returns the state with one more entry.

    `open`: reservations that are not settled or voided. `at_decision`: the history when the search ended. `orders`: how
    many launches were reserved; `launches`, `rounds`: how many were settled. `reserved_at_s`: when the newest launch
    was reserved, on the run's clock.
    """

    started: kinds.Started | None = None
    history: History = field(default_factory=History)
    open: tuple[kinds.Reserved, ...] = ()
    decision: Decision | None = None
    at_decision: History | None = None
    ended: kinds.Ended | None = None
    stopped: bool = False
    orders: int = 0
    launches: int = 0
    rounds: int = 0
    warnings: tuple[str, ...] = ()
    reserved_at_s: float = 0.0

    @staticmethod
    def replay(entries: Iterable[tuple[kinds.Entry, float]]) -> Account:
        """The state after these entries, each given with the run's elapsed seconds at that time."""
        account = Account()
        for entry, elapsed_s in entries:
            account = account.after(entry, elapsed_s)
        return account

    @property
    def job(self) -> Job:
        """The job of the run."""
        return self._started().job

    @property
    def space(self) -> Space:
        """The space of the run, with the prices of its start."""
        return self._started().space

    @property
    def provenance(self) -> Provenance:
        """Where the run's numbers come from."""
        return self._started().provenance

    def asking(self, ask: Ask) -> Account:
        """The account as if the job had had this `ask` from the start; for what-if, never written."""
        started = self._started()
        return replace(self, started=replace(started, job=replace(started.job, ask=ask)))

    @property
    def searched(self) -> History:
        """The history at the end of the search, or the current one while it goes on."""
        return self.at_decision or self.history

    @property
    def final_runs(self) -> tuple[Measurement, ...]:
        """Launches of the job itself since the last decision; changed limits lead to a new one."""
        return self.history.runs[len(self.at_decision.runs) :] if self.at_decision is not None else ()

    @property
    def status(self) -> Status:
        """The status of the run."""
        if self.ended is not None:
            return Status.FINISHED if self.ended.finished else Status.FAILED
        if self.stopped:
            return Status.STOPPED
        if self.decision is None:
            return Status.SEARCHING
        if self.final_runs or self.open:
            return Status.RUNNING
        return Status.DECIDED if self.decision.configuration is not None else Status.INFEASIBLE

    def after(self, entry: kinds.Entry, elapsed_s: float) -> Account:
        """The state with this entry."""
        history = replace(self.history, elapsed_s=max(elapsed_s, self.history.elapsed_s))
        now = replace(self, history=history)
        match entry:
            case kinds.Started():
                if self.started is not None:
                    raise BrokenBooks("the run has started already")
                known = replace(history, known=entry.known, learned=entry.learned, saved_before=entry.saved_samples)
                if len(entry.seen_before) == len(NO_REPEATS):  # else a version with other TAUS wrote it
                    known = replace(known, seen_before=entry.seen_before)
                known = replace(known, rentals_before=entry.rentals_before)
                return replace(now, started=entry, history=known)
            case kinds.Reserved():
                if any(other.launch.round != entry.launch.round for other in self.open):
                    raise BrokenBooks(f"launch {self.open[0].launch.label} is still open")
                orders = self.orders + 1
                return replace(
                    now, open=(*self.open, entry), orders=orders, stopped=False, reserved_at_s=history.elapsed_s
                )
            case kinds.Settled():
                return now._settle(entry)
            case kinds.Voided():
                return replace(now, open=now._without(entry.launch.label))
            case kinds.Refused():
                refusals = (*history.refusals, Refusal(entry.configuration, entry.because))
                return replace(now, history=replace(history, refusals=refusals))
            case kinds.Waited():
                return now
            case kinds.Warned():
                return replace(now, warnings=(*self.warnings, entry.because))
            case kinds.Decided():
                return replace(now, decision=entry.decision, at_decision=history, stopped=False)
            case kinds.Stopped():
                return replace(now, stopped=True)
            case kinds.Resumed():
                return now._resumed()
            case kinds.LimitsChanged():
                return now._resumed()._under(entry)
            case kinds.Ended():
                return replace(now, ended=entry, stopped=False)

    def _resumed(self) -> Account:
        """No longer stopped or ended; earlier failures no longer count against the next launch."""
        if self.ended is None:
            return replace(self, stopped=False)
        if self.ended.finished:
            raise BrokenBooks("the run has finished")
        return replace(self, ended=None, history=self.history.ended())

    def _under(self, limits: kinds.LimitsChanged) -> Account:
        """With other limits: refused probes may be tried again, and the decision is made again.

        A running job that replans keeps its decision: it adapts to the limits by itself.
        """
        started, history = self._started(), self.history
        job = replace(started.job, goal=limits.goal)
        if limits.max_probe_usd is not None:
            job = replace(job, search=replace(job.search, max_probe_usd=limits.max_probe_usd))
        changed = replace(self, started=replace(started, job=job), history=replace(history.ended(), refusals=()))
        if job.ask is not None and job.ask.replans and self.final_runs:
            return changed
        return replace(changed, decision=None, at_decision=None)

    def _settle(self, entry: kinds.Settled) -> Account:
        left = self._without(entry.launch.label)
        probe = entry.launch.purpose is Purpose.PROBE
        history = replace(
            self.history,
            measurements=(*self.history.measurements, entry.measurement) if probe else self.history.measurements,
            runs=self.history.runs if probe else (*self.history.runs, entry.measurement),
            spent_usd=self.history.spent_usd + entry.measurement.usd,
        )
        market, outcome = entry.launch.market, entry.measurement.outcome
        if market is not None and probe and outcome in (Outcome.LAUNCH_FAILED, Outcome.PREEMPTED):
            lost = (*history.lost_on_spot, entry.measurement.configuration)
            history = replace(history, lost_on_spot=lost)
        elif market is not None and not probe:
            rental = Rental.of(market, entry.measurement, history.elapsed_s)
            history = replace(history, rentals=(*history.rentals, rental))
        rounds = self.rounds if left else self.rounds + 1
        return replace(self, history=history, open=left, launches=self.launches + 1, rounds=rounds)

    def _without(self, label: str) -> tuple[kinds.Reserved, ...]:
        """The open reservations once the launch of this label is closed."""
        left = tuple(reserved for reserved in self.open if reserved.launch.label != label)
        if len(left) == len(self.open):
            raise BrokenBooks(f"launch {label} was never reserved, or is closed")
        return left

    def _started(self) -> kinds.Started:
        if self.started is None:
            raise BrokenBooks("the run has no first entry")
        return self.started
