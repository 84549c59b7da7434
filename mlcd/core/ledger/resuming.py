"""Resume a run that was stopped, has failed, or gets new limits; or say why it cannot be resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from mlcd.core.decision import Relaxation
from mlcd.core.errors import UserError, WrongState
from mlcd.core.guarantee import lifetime_s, round_up_usd
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.ledger.account import Account, Status
from mlcd.core.ledger.entries import LimitsChanged, Resumed
from mlcd.core.units import format_confidence, format_count, format_duration, format_usd


def resume_entry(
    run: str,
    account: Account,
    goal: Goal | None,
    elapsed_s: float,
    who: str = "the user",
    advice: Callable[[Account], str] | None = None,
) -> Resumed | LimitsChanged | None:
    """The entry that resumes the run, with the limits of `goal` if given; None if no entry is needed.

    `elapsed_s`: what the run has used of its deadline. `advice`: the planner's, for a run that no limits can certify.
    `WrongState` or `UserError`: it cannot be resumed.
    """
    status = account.status
    if status is Status.FINISHED:
        raise WrongState(f"run '{run}' is finished; there is nothing to resume. See: mlcd show {run}")
    if goal is not None and goal != account.job.goal:
        _check_limits(account, goal, elapsed_s)
        max_probe_usd, words = _changed_max_probe(account.job, goal), _change_words(account, goal, elapsed_s, who)
        if max_probe_usd is not None:
            words += f"; one probe may cost up to {format_usd(max_probe_usd)} now"
        return LimitsChanged(goal, words, max_probe_usd)
    if status is Status.INFEASIBLE:
        if _requirements_too_high(account):
            binding = account.decision.binding if account.decision is not None else ""
            raise WrongState(
                f"run '{run}': nothing that was tried keeps {binding}; try a lower requirement with mlcd what-if "
                f"{run}, or begin a new run"
            )
        helps = advice(account) if advice is not None else ""
        if mistake := account.history.mistake:
            helps = f"fix what ended every probe: {mistake}"
        if helps:
            raise WrongState(f"run '{run}' cannot be certified under any limits; in a new run, {helps}")
        command = raise_limits_command(run, account, max(0.0, elapsed_s - account.history.elapsed_s))
        raise WrongState(f"run '{run}' cannot be certified within its limits; raise them: {command}")
    if status is Status.FAILED:
        _check_worth(run, account, elapsed_s)
        return Resumed(f"{who} went on from {_saved_words(account.history)}")
    return Resumed(f"{who} went on") if account.stopped else None


def _changed_max_probe(job: Job, goal: Goal) -> float | None:
    """`max_probe` under a new budget: the same share of it as before, unless the owner set it; None for no change."""
    before_usd, most_usd = job.goal.budget_usd, job.search.max_probe_usd
    if job.search.max_probe_stated or most_usd is None or before_usd is None or goal.budget_usd is None:
        return None
    return most_usd * goal.budget_usd / before_usd if goal.budget_usd != before_usd else None


def _check_limits(account: Account, goal: Goal, elapsed_s: float) -> None:
    """Refuse limits that the run has used up already."""
    open_usd = sum(reserved.worst_usd for reserved in account.open)
    spent_usd = account.history.spent_usd
    if goal.budget_usd is not None and goal.budget_usd <= spent_usd + open_usd:
        reserved = f", and up to {format_usd(open_usd)} is reserved for open launches" if open_usd else ""
        raise UserError(
            f"budget {format_usd(goal.budget_usd)}: the run has spent {format_usd(spent_usd)} already{reserved}; "
            "a budget is for the whole run, so name more than that"
        )
    if goal.deadline_s is not None and goal.deadline_s <= elapsed_s:
        raise UserError(
            f"deadline {format_duration(goal.deadline_s)}: the run began {format_duration(elapsed_s)} ago; "
            "a deadline is for the whole run, so name more than that"
        )


def _check_worth(run: str, account: Account, elapsed_s: float) -> None:
    """Refuse to launch a job again that would start from nothing, or would end at the same limit at once."""
    history, ended = account.history, account.ended.because if account.ended is not None else ""
    replans = account.job.ask is not None and account.job.ask.replans
    if not history.saved_samples and not (replans and any(launch.samples_done for launch in history.runs)):
        raise WrongState(
            f"run '{run}' failed and saved no work: {ended}. Start again with mlcd train, or give it "
            f"other limits: {raise_limits_command(run, account)}"
        )
    if replans or not history.runs:
        return
    now = replace(history, elapsed_s=max(elapsed_s, history.elapsed_s))
    left_s = lifetime_s(account.job.goal, now, history.runs[-1].configuration)
    if left_s is not None and left_s <= account.space.startup_limit_s:
        raise WrongState(
            f"run '{run}' ended at its limit, with {_saved_words(history)} kept; "
            f"raise it: {raise_limits_command(run, account)}"
        )


def _requirements_too_high(account: Account) -> bool:
    """Whether not a limit, but a requirement of the planner prevents a decision."""
    ways = account.decision.relaxations if account.decision is not None else ()
    return bool(ways) and all(way.easing and way.budget_usd is None and way.deadline_s is None for way in ways)


def raise_limits_command(run: str, account: Account, since_s: float = 0.0) -> str:
    """The command that resumes the run with limits that are enough, as far as known.

    `since_s`: time since the decision. `max_probe` cannot change within a run: if only that must be raised, the command
    starts a new run.
    """
    goal, ways = account.job.goal, account.decision.relaxations if account.decision is not None else ()
    way = ways[0] if ways else Relaxation()
    if way.max_probe_usd is not None:
        return f"mlcd train JOB --max-probe {round_up_usd(way.max_probe_usd)}"
    options = f" --budget {round_up_usd(way.budget_usd)}" if way.budget_usd is not None else ""
    options += f" --deadline {ceil((way.deadline_s + since_s) / 60)}m" if way.deadline_s is not None else ""
    if not options:
        options += " --budget USD" if goal.budget_usd is not None or goal.deadline_s is None else ""
        options += " --deadline TIME" if goal.deadline_s is not None else ""
    return f"mlcd resume {run}{options}"


def _change_words(account: Account, goal: Goal, elapsed_s: float, who: str) -> str:
    """'the user changed the budget from $5.00 to $8.00, $4.97 of it spent before; ...'."""
    before, changes = account.job.goal, []
    if goal.budget_usd != before.budget_usd:
        old, new = (_limit(each.budget_usd, format_usd) for each in (before, goal))
        changes.append(f"the budget from {old} to {new}, {format_usd(account.history.spent_usd)} spent before")
    if goal.deadline_s != before.deadline_s:
        old, new = (_limit(each.deadline_s, format_duration) for each in (before, goal))
        changes.append(f"the deadline from {old} to {new}, {format_duration(elapsed_s)} used before")
    if goal.confidence != before.confidence:
        old, new = (format_confidence(each.confidence) for each in (before, goal))
        changes.append(f"the confidence of certificates from {old} to {new}")
    return f"{who} changed {' and '.join(changes)}; it goes on from {_saved_words(account.history)}"


def _saved_words(history: History) -> str:
    if history.saved_samples:
        return f"{format_count(history.saved_samples)} saved samples"
    return "its probes; no work is saved" if history.runs else "its probes"


def _limit(value: float | None, words: Callable[[float], str]) -> str:
    return "no limit" if value is None else words(value)
