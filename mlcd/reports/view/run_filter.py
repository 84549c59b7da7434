"""The filter of a list of runs, the same in the pages, the API and the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mlcd.reports.view.summary import Summary, standing_of

Archived = Literal["no", "only", "all"]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A run passes if all given conditions hold. `tags`: it has all of them. `since`, `until`: when it began.

    An archived run that was resumed is listed while it is active.
    """

    status: str | None = None
    kind: str | None = None
    owner: str | None = None
    team: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    archived: Archived = "no"

    def passes(self, run: Summary) -> bool:
        """Whether this run passes the filter."""
        equal = {"kind": self.kind, "owner": self.owner, "team": self.team, "project": self.project}
        return (
            all(wanted is None or getattr(run, name) == wanted for name, wanted in equal.items())
            and (self.status is None or self.status in (run.status, standing_of(run.status, run.driven)))
            and set(self.tags) <= set(run.tags)
            and (self.archived == "all" or (run.archived and not run.driven) == (self.archived == "only"))
            and self._in_time(run)
            and self._has_text(run)
        )

    def _in_time(self, run: Summary) -> bool:
        if self.since is None and self.until is None:
            return True
        began = datetime.fromisoformat(run.started_at)
        return (self.since is None or began >= self.since) and (self.until is None or began < self.until)

    def _has_text(self, run: Summary) -> bool:
        wanted = self.text.lower()
        return any(wanted in words.lower() for words in (run.run, run.job, run.project or "", run.note, *run.tags))
