"""Where a run stands: what is under way, what comes next and why, what can be done now, and what makes it safe."""

from __future__ import annotations

from typing import Any

from mlcd.core.decision import Decision, Forecast
from mlcd.core.forecasts import keeps_limits
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Line, Reserved, Status
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask, service_of
from mlcd.planners.serve.promise import certifies
from mlcd.reports import answer as trained
from mlcd.reports.functions import page as on_functions
from mlcd.reports.run_document.part import taken
from mlcd.reports.serve import page as served
from mlcd.reports.serve.words import certificate_words, promise_words
from mlcd.reports.story import Story
from mlcd.reports.view.page import UnderWay
from mlcd.reports.words import decision_words, slow_rate_words, where_words

ACTIVE = (Status.SEARCHING, Status.RUNNING)


def under_way(story: Story) -> list[dict[str, Any]]:
    """Launches that are reserved and not settled."""
    since = {line.entry.launch.label: line for line in story.lines if isinstance(line.entry, Reserved)}
    return [_open(reserved, since[reserved.launch.label]) for reserved in story.account.open]


def _open(reserved: Reserved, line: Line) -> dict[str, Any]:
    launch = reserved.launch
    told = taken(UnderWay, reserved, label=launch.label, purpose=str(launch.purpose), since_s=line.elapsed_s)
    return told | {"configuration": str(launch.configuration)}


def next_words(story: Story, driven: bool) -> str:
    """What will happen next, or why it ended, in one line."""
    account, decision = story.account, story.decision
    if account.ended is not None:
        return f"ended: {account.ended.because}"
    if account.status is Status.STOPPED:
        return "stopped; resume it to go on from here: nothing that was measured is paid for twice"
    if account.status in ACTIVE and not driven:
        return "nobody drives it now; resume it to go on from here"
    if account.open:
        last = account.open[-1]
        return f"waiting for {last.launch.configuration}: {last.because}"
    if decision is None:
        return "thinking about what to try next"
    if decision.configuration is None:
        return f"the search ended: {decision.because}; {decision_words(decision, story.goal)}"
    if isinstance(story.job.ask, ServingTask):
        return f"the search ended: {decision.because}; export it to deploy it"
    if account.status is Status.RUNNING:
        return "the job goes on with its next launch"
    return f"the search ended: {decision.because}; launch it to run the job"


def actions(account: Account, driven: bool) -> list[str]:
    """What can be done now: launch, resume, stop, down."""
    if driven:
        return ["stop", "down"]
    found = []
    if account.status is Status.DECIDED and not isinstance(account.job.ask, ServingTask):
        found.append("launch")
    if account.status in (*ACTIVE, Status.STOPPED):
        found.append("resume")
    return [*found, "down"] if account.open or account.status in ACTIVE else found


def answer(story: Story) -> dict[str, Any]:
    """The answer in a sentence and one more, and the key figures: the words of the report."""
    if isinstance(story.job.ask, ServingTask):
        (said, more), cards = served.sentences(story), served.cards(story)
    elif isinstance(story.job.ask, FunctionsTask):
        (said, more), cards = on_functions.sentences(story), on_functions.cards(story)
    else:
        (said, further), cards = trained.sentences(story), trained.cards(story)
        more = " ".join(each for each in further if each)
    return {
        "answer": {"sentence": said, "more": more},
        "cards": [{"name": name, "value": value, "note": note} for name, value, note in cards],
    }


def certificate(story: Story) -> dict[str, Any] | None:
    """The sum that makes the choice safe, or that of the best so far; None where there is nothing to say yet."""
    if isinstance(story.job.ask, ServingTask):
        return _of_service(story)
    decision = story.decision
    if isinstance(story.job.ask, FunctionsTask):
        if decision is None or decision.forecast is None:
            return None
        note = on_functions.reserve_note(story, decision.forecast)
        return reserve("The reserve of the plan", note, story.goal, story.search, decision.forecast, decision)
    found = trained.where_it_ends(story)
    if found is None:
        return None
    place, ahead = found
    gone = story.search
    holds = keeps_limits(story.goal, gone, ahead)
    note = trained.reserve_note(story, ahead)
    decision = decision or Decision(place, "the best so far", certified=holds, confidence=story.goal.confidence)
    return reserve(f"The reserve on {place}", note, story.goal, gone, ahead, decision)


def what_if_certificate(job: Job, gone: History, decision: Decision) -> dict[str, Any] | None:
    """The same of a decision that was made again under another goal."""
    if isinstance(job.ask, ServingTask) or decision.forecast is None:
        return None
    finishing = f"finishing{where_words(decision.forecast)}"
    note = f"What the search took, plus {finishing} at {slow_rate_words(decision)}, against the limit."
    headline = f"The reserve on {decision.configuration}"
    return reserve(headline, note, job.goal, gone, decision.forecast, decision)


def reserve(headline: str, note: str, goal: Goal, gone: History, ahead: Forecast, of: Decision) -> dict[str, Any]:
    """gone + kept <= limit, for each limit."""
    terms = []
    if goal.budget_usd is not None:
        terms.append(_term("usd", gone.spent_usd, ahead.worst_usd, goal.budget_usd))
    if goal.deadline_s is not None:
        terms.append(_term("s", gone.elapsed_s, ahead.worst_seconds, goal.deadline_s))
    sentence = note if terms else "There is no limit to break."
    told = {"certified": of.certified, "confidence": of.confidence if terms else None}
    return {**told, "headline": headline, "sentence": sentence, "terms": terms}


def _of_service(story: Story) -> dict[str, Any] | None:
    """Of a service: what was measured of the choice, and whether its unlucky end keeps what is asked."""
    found = served.found_trial(story)
    if found is None:
        return None
    certified = story.decision.certified if story.decision is not None else certifies(story.job, found)
    promise = promise_words(found, service_of(story.job))
    sentence = f"{promise}; {certificate_words(found, story.job, certified)}."
    told = {"certified": certified, "confidence": None}
    return {**told, "headline": f"What {found.configuration} keeps", "sentence": sentence, "terms": []}


def _term(unit: str, gone: float, kept: float, limit: float) -> dict[str, Any]:
    return {"unit": unit, "gone": gone, "kept": kept, "limit": limit, "holds": gone + kept <= limit}
