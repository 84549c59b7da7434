"""The top of a run's page: the answer in a sentence, the key figures, and the sum that makes it safe."""

from __future__ import annotations

from collections.abc import Callable

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Forecast, Relaxation
from mlcd.core.forecasts import keeps_limits
from mlcd.core.ledger import Status
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.reports.story import Story
from mlcd.reports.words import (
    all_the_work_words,
    certificate_words,
    fallback_words,
    relaxation_words,
    slow_rate_words,
    where_words,
)

Card = tuple[str, str, str]
"""A key figure: its name, its value, and a note on it."""
MOST_WARNINGS = 3
"""That are told beside the answer."""


def cards(story: Story) -> list[Card]:
    """The key figures in words."""
    history = story.account.history
    probing = sum(probe.measurement.usd for probe in story.probes)
    probing_s = sum(probe.measurement.seconds for probe in story.probes)
    total_s, total_usd, word = _totals(story)
    share = f"{probing / total_usd:.1%} of the total, {format_duration(probing_s)}" if total_usd else "nothing spent"
    failed = len(story.failed)
    found = [
        ("Total cost", format_usd(total_usd), word),
        ("Total time", format_duration(total_s), word),
        ("Spent on probing", format_usd(probing), share),
        ("Probes", str(len(story.probes)), f"{len(story.probes) - failed} ok, {failed} failed"),
    ]
    goal = story.goal
    if goal.budget_usd is not None:
        left = left_words(goal.budget_usd - history.spent_usd, format_usd)
        found.append(("Budget", format_usd(goal.budget_usd), left))
    if goal.deadline_s is not None:
        left = left_words(goal.deadline_s - history.elapsed_s, format_duration)
        found.append(("Deadline", format_duration(goal.deadline_s), left))
    if not goal.limited:
        found.append(("Limits", "none", "no budget, no deadline"))
    return found


def reserve_note(story: Story, ahead: Forecast) -> str:
    """What the reserve's equations say, in a sentence."""
    verb = "stays within" if keeps_limits(story.goal, story.search, ahead) else "does not stay within"
    rate = "the slow end of the measured rate" if story.decision is None else slow_rate_words(story.decision)
    return f"What the search took, plus finishing{where_words(ahead)} at {rate}, {verb} the limit."


def newest_warnings(story: Story) -> list[str]:
    """What the user was warned of, as far as it is told beside the answer."""
    return list(story.account.warnings[-MOST_WARNINGS:])


def limits_words(story: Story) -> str:
    """'$300.00 / 12 h', or '' without limits."""
    goal = story.goal
    said = [format_usd(goal.budget_usd)] if goal.budget_usd is not None else []
    said += [format_duration(goal.deadline_s)] if goal.deadline_s is not None else []
    return " / ".join(said)


def sentences(story: Story) -> tuple[str, list[str]]:
    """The answer, and what needs saying after it."""
    probes = counted(len(story.probes), "probe")
    decision = story.decision
    resume = f"Go on with: mlcd resume {story.run}"
    if decision is None:
        stopped = story.status is Status.STOPPED
        sentence = (
            f"{'Stopped' if stopped else 'Still searching'} after {probes}, {format_usd(story.settled_usd)} spent"
        )
        if (best := story.best) is not None:
            sentence += f"; best so far {_expected(story, best.measurement.configuration, *story.total(best))}"
        return sentence + ".", [resume if stopped else "This page shows the run as it stood; make it again later."]
    if decision.configuration is None:
        return f"Cannot be certified: {_binding(story)}.", [_needs(decision.relaxations)]
    within = limits_words(story)
    if story.account.ended is not None:
        history = story.account.history
        used = f"{format_duration(history.elapsed_s)} and {format_usd(history.spent_usd)} in total"
        if story.status is Status.FINISHED:
            certified = f"; {certificate_words(decision, f'within {within}')}" if within else ""
            return f"{decision.configuration}: finished, {used}{certified}.", []
        return f"{decision.configuration}: the job did not finish, {used}.", [f"{story.account.ended.because}."]
    forecast = decision.forecast
    sentence = str(decision.configuration)
    if forecast is not None:
        total_s, total_usd = story.search.elapsed_s + forecast.seconds, story.search.spent_usd + forecast.usd
        sentence = _expected(story, decision.configuration, total_s, total_usd)
        if decision.curve and decision.curve[0].relative:
            takes = f"{format_duration(total_s)} and {format_usd(total_usd)} in total"
            sentence = f"{decision.configuration}: {takes} {all_the_work_words(decision)}"
    if within:
        sentence += f"; {certificate_words(decision, f'within {within}')}{fallback_words(decision)}"
    now = {Status.RUNNING: "The job itself is running.", Status.STOPPED: f"The final run was stopped. {resume}"}
    return sentence + ".", [now.get(story.status, "")]


def _expected(story: Story, configuration: object, seconds: float, usd: float) -> str:
    return f"{configuration}: {format_duration(seconds)} and {format_usd(usd)} expected in total"


def _binding(story: Story) -> str:
    """The constraint with its value: 'the budget ($30.00) cannot be kept on anything that was measured'."""
    decision, goal = story.decision, story.goal
    binding = decision.binding if decision is not None else ""
    said = [format_usd(goal.budget_usd)] if goal.budget_usd is not None and binding != "the deadline" else []
    said += [format_duration(goal.deadline_s)] if goal.deadline_s is not None and binding != "the budget" else []
    told = f"{binding} ({' / '.join(said)})" if said else binding
    measured = decision is not None and any(way.max_probe_usd is None for way in decision.relaxations)
    return f"{told} cannot be kept on anything that was measured" if measured else told


def _needs(relaxations: tuple[Relaxation, ...]) -> str:
    """'It needs $131, or 9 h 20 m.'"""
    ways = ", or ".join(relaxation_words(way) for way in relaxations)
    return f"It needs {ways}." if ways else ""


def _totals(story: Story) -> tuple[float, float, str]:
    history = story.account.history
    if story.account.ended is not None:
        return history.elapsed_s, history.spent_usd, "actual, probes included"
    if (found := where_it_ends(story)) is not None:
        word = "expected, probes included" if story.decision is not None else "expected on the best so far"
        return story.search.elapsed_s + found[1].seconds, story.search.spent_usd + found[1].usd, word
    return history.elapsed_s, history.spent_usd, "so far" if story.decision is None else "spent on the search"


def where_it_ends(story: Story) -> tuple[Configuration, Forecast] | None:
    """Where the job would end, and what that takes: as decided, or on the best so far."""
    if (best := story.best) is not None:
        return best.measurement.configuration, story.ahead(best)
    decision = story.decision
    if decision is None or not decision.curve or decision.configuration is None or decision.forecast is None:
        return None
    return decision.configuration, decision.forecast  # of a curve, what is chosen need not have been probed


def left_words(left: float, words: Callable[[float], str]) -> str:
    """'$1.20 left', 'passed by 5 m'."""
    return f"{words(left)} left" if left >= 0 else f"passed by {words(-left)}"
