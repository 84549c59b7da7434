"""Check MLCD's promises about a search, from its ledger."""

from collections.abc import Sequence
from dataclasses import replace

from mlcd.core.decision import Decision
from mlcd.core.drive import launch, search
from mlcd.core.forecasts import objective, remaining_job
from mlcd.core.guarantee import certifiable_forecasts, decide
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Ledger, Line, Refused, Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.place import Cloud
from mlcd.core.planner import planner_of
from mlcd.core.strategy import Probe, Round, Strategy
from mlcd.planners.train.completion import RunToCompletion

ROUNDING = 1e-9
"""Relative tolerance for rounding in sums of floats."""


def search_and_run(
    strategy: Strategy, job: Job, cloud: Cloud, known: tuple[Measurement, ...] = ()
) -> tuple[Ledger, str, Decision]:
    """Search, decide and, if anything was chosen, run to the end, on a ledger in memory."""
    ledger = Ledger(None)
    book = ledger.begin(job.name, cloud.clock, Started(job, cloud.space, "test", cloud.provenance, "test", known))
    decision = search(strategy, job, cloud.space, cloud.profiler, book, decide=planner_of(job).decide)
    if decision.configuration is not None:
        launch(RunToCompletion(decision.configuration), job, cloud.space, cloud.profiler, book)
    replayed = ledger.account(book.run)
    assert replayed == book.account, "replay differs from what was live"
    return ledger, book.run, decision


def check_promises(
    strategy: Strategy, job: Job, lines: Sequence[Line], *, steady: bool = True, best: bool = True
) -> None:
    """Check all promises.

    `steady`: the noise is bounded by its stated level, and launches do not fail by chance. `best`: the strategy leaves
    the choice to the guarantee, which takes the best that can be certified.
    """
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    check_books(job.goal, lines)
    check_repeatable(strategy, job, lines)
    if account.decision is not None:
        check_decision(job, lines, account.decision, best=best)
        if steady and account.decision.certified:  # then the run finishes; `check_books` has checked the limits
            assert account.history.runs, "certified, but not run"
            outcome = account.history.runs[-1].outcome
            assert outcome is Outcome.OK, f"certified, but ended {outcome}"


def check_books(goal: Goal, lines: Sequence[Line]) -> None:
    """Every launch had a reservation that covered it, and the limits held after every entry."""
    reserved: dict[str, Reserved] = {}
    for i, line in enumerate(lines):
        match line.entry:
            case Reserved(launch=order):
                assert all(other.launch.round == order.round for other in reserved.values()), "two rounds at once"
                reserved[order.label] = line.entry
            case Settled(launch=order, measurement=measurement):
                assert order.label in reserved, "a launch that was never reserved"
                worst = reserved.pop(order.label)
                assert order == worst.launch, "settled for another launch than was reserved"
                if goal.limited or order.purpose == "probe":
                    assert measurement.usd <= worst.worst_usd * (1 + ROUNDING), "cost more than was reserved"
                    assert measurement.seconds <= worst.worst_s * (1 + ROUNDING), "took longer than was reserved"
        history = Account.replay((past.entry, past.elapsed_s) for past in lines[: i + 1]).history
        assert goal.budget_usd is None or history.spent_usd <= goal.budget_usd * (1 + ROUNDING), "over budget"
        assert goal.deadline_s is None or history.elapsed_s <= goal.deadline_s * (1 + ROUNDING), "past the deadline"
    assert not reserved, "a launch was left open"


def check_repeatable(strategy: Strategy, job: Job, lines: Sequence[Line]) -> None:
    """The same history gives the same step, and a reason with it."""
    for i, line in enumerate(lines):
        past = Account.replay((before.entry, before.elapsed_s) for before in lines[:i])
        if isinstance(line.entry, Reserved) and line.entry.launch.purpose == "probe" and not past.open:
            again = strategy.next_step(remaining_job(job, past.history), past.space, past.history)
            assert isinstance(again, Probe | Round), "another step than before"
            probe = again.probes[0] if isinstance(again, Round) else again
            assert probe.configuration == line.entry.launch.configuration, "another probe than before"
            assert probe.because == line.entry.because, "another reason than before"
            assert probe.because, "a probe without a reason"
        if isinstance(line.entry, Refused):
            assert line.entry.because, "a refusal without a reason"


def check_decision(job: Job, lines: Sequence[Line], decision: Decision, *, best: bool = True) -> None:
    """The choice is the best that could be certified; without one, the relaxations would have been enough."""
    until = next(i for i, line in enumerate(lines) if line.entry.kind == "decided")
    then = Account.replay((line.entry, line.elapsed_s) for line in lines[: until + 1])
    job = remaining_job(job, then.history)
    ahead = certifiable_forecasts(job, then.space, then.history)
    if decision.configuration is not None:
        if best:
            least = min(objective(job.goal, each) for each in ahead.values())
            assert objective(job.goal, ahead[decision.configuration]) == least, "a better one could be certified"
        return
    assert not ahead, "something could have been certified"
    for way in decision.relaxations:
        if way.max_probe_usd is not None:  # only the price of a probe, no promise
            assert job.search.max_probe_usd is not None
            assert way.max_probe_usd > job.search.max_probe_usd, "that was allowed already"
            continue
        if way.confidence is not None:
            assert way.confidence < job.goal.confidence, "that was asked for already"
        limits = {name: getattr(way, name) for name in ("budget_usd", "deadline_s", "confidence")}
        goal = replace(job.goal, **{name: value for name, value in limits.items() if value is not None})
        relaxed = decide(replace(job, goal=goal), then.space, then.history, "relaxed")
        assert relaxed.certified, "the relaxation would not have been enough"
