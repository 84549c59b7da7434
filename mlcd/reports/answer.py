"""The top of the page of a run on machines: the answer in a sentence, and the key figures.

The same for other runs is in `mlcd.reports.functions` and `mlcd.reports.serve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision, Forecast
from mlcd.core.history import History
from mlcd.core.job import Goal
from mlcd.core.ledger import Status
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.reports.story import Story
from mlcd.reports.words import (
    all_the_work_words,
    certificate_words,
    expected_words,
    fallback_words,
    limits_words,
    memory_words,
    relaxation_words,
)

Card = tuple[str, str, str]
"""A key figure: its name, its value, and a note on it."""


def cards(story: Story) -> list[Card]:
    """The key figures in words."""
    probing = sum(probe.measurement.usd for probe in story.probes)
    probing_s = sum(probe.measurement.seconds for probe in story.probes)
    total_s, total_usd, word = totals(story)
    share = f"{probing / total_usd:.1%} of the total, {format_duration(probing_s)}" if total_usd else "nothing spent"
    failed = len(story.failed)
    shown = [
        ("Total cost", format_usd(total_usd), word),
        ("Total time", format_duration(total_s), word),
        ("Spent on probing", format_usd(probing), share),
        ("Probes", str(len(story.probes)), f"{len(story.probes) - failed} ok, {failed} failed"),
    ]
    return [*shown, *(limit_cards(story) or [("Limits", "none", "no budget, no deadline")])]


def limit_cards(story: Story) -> list[Card]:
    """The budget and the deadline, if set, and what is left of each."""
    goal, history, shown = story.goal, story.account.history, []
    if goal.budget_usd is not None:
        left = left_words(goal.budget_usd - history.spent_usd, format_usd)
        shown.append(("Budget", format_usd(goal.budget_usd), left))
    if goal.deadline_s is not None:
        left = left_words(goal.deadline_s - history.elapsed_s, format_duration)
        shown.append(("Deadline", format_duration(goal.deadline_s), left))
    return shown


def sentences(story: Story) -> tuple[str, str]:
    """The answer, and a second sentence where one is needed."""
    decision, history = story.decision, story.account.history
    if decision is None:
        best = story.best
        found = "" if best is None else f"{best.measurement.configuration}: {_total_words(story, story.ahead(best))}"
        return undecided(story, "searching", counted(len(story.probes), "probe"), found)
    if decision.configuration is None:
        return _infeasible(decision, story.goal, history)
    within, sentence = limits_words(story.goal), str(decision.configuration)
    certificate = f"; {certificate_words(decision, within)}" if within else ""
    if story.account.ended is not None:
        used = f"{format_duration(history.elapsed_s)} and {format_usd(history.spent_usd)} in total"
        if story.account.status is Status.FINISHED:
            return f"{sentence}: finished, {used}{certificate}.", ""
        return f"{sentence}: the job did not finish, {used}.", f"{story.account.ended.because}."
    if decision.forecast is not None:
        sentence += f": {_total_words(story, decision.forecast)}"
    stopped = f"The final run was stopped. Go on with: mlcd resume {story.run}"
    now = {Status.RUNNING: "The job itself is running.", Status.STOPPED: stopped}
    fallback = (fallback_words(decision) if within else "") + memory_words(decision)
    return f"{sentence}{certificate}{fallback}.", now.get(story.account.status, "")


def undecided(story: Story, doing: str, tried: str, best: str = "") -> tuple[str, str]:
    """The two sentences of a run that has no decision yet. `best`: the best so far, in words."""
    stopped = story.account.status is Status.STOPPED
    sentence = f"{'Stopped' if stopped else f'Still {doing}'} after {tried}"
    sentence += f", {format_usd(story.account.history.spent_usd)} spent" + (f"; best so far {best}" if best else "")
    now = "This page shows the run as it was when the page was written; write it again later."
    return f"{sentence}.", f"Go on with: mlcd resume {story.run}" if stopped else now


def _total_words(story: Story, ahead: Forecast) -> str:
    """'2 h and $12.00 expected in total'; for a ranking, what all of the work takes."""
    seconds, usd = story.total(ahead)
    total, decision = f"{format_duration(seconds)} and {format_usd(usd)}", story.decision
    if decision is not None and decision.curve and decision.curve[0].relative:
        return f"{total} in total {all_the_work_words(decision)}"
    return f"{total} in total {expected_words(ahead)}" if ahead.on_spot else f"{total} expected in total"


def _infeasible(decision: Decision, goal: Goal, history: History) -> tuple[str, str]:
    """Which limit cannot be kept, with its value and why, and what would be enough."""
    binding, ways = decision.binding, decision.relaxations
    if any(m.mistake is not None and binding.endswith(m.mistake) for m in history.measurements):
        return f"{binding[0].upper()}{binding[1:]}.", "Fix the job and submit it again; other limits would not help."
    needs = ", or ".join(filter(None, map(relaxation_words, ways)))
    more = f"It needs {needs}." if needs else ""
    named = re.match(r"the (?P<budget>budget)?(?P<deadline>(?: and the )?deadline)?(?: together)?", binding)
    if named is None or not any(named.groups()):
        return f"Cannot be certified: {binding}.", more
    limits = [format_usd(goal.budget_usd)] if named["budget"] and goal.budget_usd is not None else []
    limits += [format_duration(goal.deadline_s)] if named["deadline"] and goal.deadline_s is not None else []
    limit, why = f"{named[0]} ({' / '.join(limits)})", binding[named.end() :]
    if any(way.max_probe_usd is None for way in ways):
        return f"Cannot be certified: nothing that was measured keeps {limit}{why}.", more
    return f"Cannot be certified within {limit}{why}.", more


def totals(story: Story) -> tuple[float, float, str]:
    """Seconds and dollars in total, and what they are: actual, expected, or so far."""
    history = story.account.history
    if story.account.ended is not None:
        return history.elapsed_s, history.spent_usd, "actual, probes included"
    if (end := where_it_ends(story)) is not None:
        word = "expected, probes included" if story.decision is not None else "expected on the best so far"
        word += ", on spot machines where that is cheaper" if end[1].on_spot else ""
        return *story.total(end[1]), word
    return history.elapsed_s, history.spent_usd, "so far" if story.decision is None else "spent on the search"


def where_it_ends(story: Story) -> tuple[Configuration, Forecast] | None:
    """The configuration to finish on, as decided or the best so far, and the forecast for it."""
    if (best := story.best) is not None:
        return best.measurement.configuration, story.ahead(best)
    decision = story.decision
    if decision is None or not decision.curve or decision.configuration is None or decision.forecast is None:
        return None
    return decision.configuration, decision.forecast  # a point of a curve may be chosen without a probe


def left_words(left: float, words: Callable[[float], str]) -> str:
    """'$1.20 left', 'exceeded by 5 m'."""
    return f"{words(left)} left" if left >= 0 else f"exceeded by {words(-left)}"
