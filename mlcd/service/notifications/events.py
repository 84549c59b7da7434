"""The events that cause notifications: each follows from a ledger entry and the run's account before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from mlcd.core.backend import Provenance
from mlcd.core.ledger import Account, Decided, Ended, Line, Settled, Status, Stopped
from mlcd.core.planner import planner_of
from mlcd.core.units import counted, format_duration, format_usd

WARNING_SHARE = 0.8  # of a budget or a deadline
TEST = "test"
"""The event of a test message; not among `EVENTS`, since nobody subscribes to it."""
EVENTS = {
    "finished": "the job ran to its last sample",
    "failed": "the job ended before its last sample",
    "infeasible": "nothing measured can be certified",
    "waiting": "a decision waits for somebody's yes",
    "budget": "80 % of the run's budget is spent",
    "deadline": "80 % of the time until the run's deadline is over",
    "left_behind": "no process drives the run, and its machines may still be billed",
    "member_budget": "80 % of a member's own budget is spent",
    "team_budget": "80 % of a team's budget is spent",
}
"""Each event, and when it occurs."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification: `event` is its name, `words` a sentence, `money` the spending so far.

    `link`: the URL of the run's page; '' if the service does not know its own public URL.
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
        """Identifies the notification; the same at each retry."""
        return f"{self.seq}-{self.event}"

    @property
    def title(self) -> str:
        """The run, its owner and the event: 'resnet-1 of ada: left behind'."""
        whose = f" of {self.owner}" if self.owner is not None else ""
        return f"{self.run}{whose}: {self.event.replace('_', ' ')}" if self.run else f"mlcd: {self.event}"

    @property
    def text(self) -> str:
        """Everything but the link, in one line."""
        return f"{self.title}. {self.words}{f'; {self.money}' if self.money else ''}"


def events_of_entry(
    line: Line, before: Account, after: Account, launches: Callable[[], bool]
) -> Iterator[tuple[str, str]]:
    """The events of an entry, with words. `launches`: whether the decision is launched without asking."""
    entry = line.entry
    if isinstance(entry, Ended):
        yield ("finished" if entry.finished else "failed"), entry.because
    elif isinstance(entry, Decided) and after.status is Status.INFEASIBLE:
        yield "infeasible", entry.decision.because
    elif isinstance(entry, Decided) and planner_of(after.job).launches and not entry.decision.done and not launches():
        yield "waiting", f"{entry.decision.configuration} was chosen; its launch waits for a yes"
    elif isinstance(entry, Stopped) and after.open and after.provenance is Provenance.LIVE:
        machines = counted(sum(each.launch.configuration.nodes for each in after.open), "machine")
        yield "left_behind", f"{entry.because}. {machines} may still be billed; end them with: mlcd down {line.run}"
    elif isinstance(entry, Settled):
        goal, history = after.job.goal, after.history
        if _crosses(before.history.spent_usd, history.spent_usd, goal.budget_usd):
            yield "budget", f"{100 * history.spent_usd / (goal.budget_usd or 1.0):.0f} % of its budget is spent"
        if _crosses(before.history.elapsed_s, history.elapsed_s, goal.deadline_s):
            yield (
                "deadline",
                f"{format_duration(history.elapsed_s)} of {format_duration(goal.deadline_s or 0.0)} are over",
            )


def spent_words(account: Account) -> str:
    """What a run has spent of its budget, in words."""
    budget_usd = account.job.goal.budget_usd
    of_all = f" of {format_usd(budget_usd)}" if budget_usd is not None else ""
    return f"{format_usd(account.history.spent_usd)}{of_all} spent"


def run_url(run: str, public_url: str | None) -> str:
    """The URL of a run's page; '' without a public URL."""
    return f"{public_url}/runs/{quote(run, safe='')}" if public_url is not None else ""


def _crosses(before: float, after: float, limit: float | None) -> bool:
    return limit is not None and before < WARNING_SHARE * limit <= after
