"""What is news: it follows from an entry of the ledger, and from the account before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from mlcd.core.backend import Provenance
from mlcd.core.ledger import Account, Decided, Ended, Line, Settled, Status, Stopped
from mlcd.core.planner import planner_of
from mlcd.core.units import counted, format_duration, format_usd

SHARE = 0.8  # of a budget or a deadline
TEST = "test"
"""The event of a message by which somebody sees that news would arrive; not one of `EVENTS`, which can be chosen."""
EVENTS = {
    "finished": "the job ran to its last sample",
    "failed": "the job ended before its last sample",
    "infeasible": "nothing measured can be certified",
    "waiting": "a decision waits for somebody's yes",
    "budget": "80 % of the run's budget are spent",
    "deadline": "80 % of the run's time are over",
    "left_behind": "nobody drives the run, and its machines may still be billed",
    "member_budget": "80 % of a member's own budget are spent",
    "team_budget": "80 % of a team's budget are spent",
}
"""Each event, and when it is told."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that somebody may wait for: `event` in a word, `words` in a sentence, `money` so far.

    `link`: the run's page; '' where the service does not know how members reach it.
    """

    seq: int
    run: str
    event: str
    at: datetime
    words: str
    money: str = ""
    owner: str | None = None
    team: str | None = None
    link: str = ""

    @property
    def id(self) -> str:
        """The same each time that it is sent."""
        return f"{self.seq}-{self.event}"

    @property
    def title(self) -> str:
        """Of which run, whose it is, and what happened: 'resnet-1 of ada: left behind'."""
        whose = f" of {self.owner}" if self.owner is not None else ""
        return f"{self.run}{whose}: {self.event.replace('_', ' ')}" if self.run else f"mlcd: {self.event}"

    @property
    def text(self) -> str:
        """All of it but the link, in one line."""
        return f"{self.title}. {self.words}{f'; {self.money}' if self.money else ''}"


def news_of(line: Line, before: Account, after: Account, launches: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """What an entry says, as event and words. `launches`: whether a decision is launched without a yes."""
    entry = line.entry
    if isinstance(entry, Ended):
        yield ("finished" if entry.finished else "failed"), entry.because
    elif isinstance(entry, Decided) and after.status is Status.INFEASIBLE:
        yield "infeasible", entry.decision.because
    elif isinstance(entry, Decided) and planner_of(after.job).launches and not entry.decision.done and not launches():
        yield "waiting", f"{entry.decision.configuration} is decided and waits for a yes"
    elif isinstance(entry, Stopped) and after.open and after.provenance is Provenance.LIVE:
        machines = counted(sum(each.launch.configuration.nodes for each in after.open), "machine")
        yield "left_behind", f"{entry.because}. {machines} may still be billed; end them with: mlcd down {line.run}"
    elif isinstance(entry, Settled):
        goal, history = after.job.goal, after.history
        if _passes(before.history.spent_usd, history.spent_usd, goal.budget_usd):
            yield "budget", f"{100 * history.spent_usd / (goal.budget_usd or 1.0):.0f} % of its budget are spent"
        if _passes(before.history.elapsed_s, history.elapsed_s, goal.deadline_s):
            yield (
                "deadline",
                f"{format_duration(history.elapsed_s)} of {format_duration(goal.deadline_s or 0.0)} are over",
            )


def money_of(account: Account) -> str:
    """What a run has spent, and of how much."""
    budget_usd = account.job.goal.budget_usd
    of_all = f" of {format_usd(budget_usd)}" if budget_usd is not None else ""
    return f"{format_usd(account.history.spent_usd)}{of_all} spent"


def page_of(run: str, public_url: str | None) -> str:
    """The address of a run's page; '' if nobody knows it."""
    return f"{public_url}/runs/{quote(run, safe='')}" if public_url is not None else ""


def _passes(before: float, after: float, limit: float | None) -> bool:
    return limit is not None and before < SHARE * limit <= after
