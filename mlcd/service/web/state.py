"""What every route has at hand: the ledger, the members, the workers, the settings, and the feed of what happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from mlcd.core.ledger import Ledger
from mlcd.service.web.feed import Feed
from mlcd.service.web.settings import Settings

if TYPE_CHECKING:
    from mlcd.core.database import Database
    from mlcd.service.team import Audit, Members
    from mlcd.service.workers.crew import Crew


@dataclass(frozen=True)
class State:
    """One service. `members` is None where there is one person and no account."""

    ledger: Ledger
    database: Database
    crew: Crew
    members: Members | None
    audit: Audit
    settings: Settings
    feed: Feed


def state_of(request: Request) -> State:
    """The state of the app that a request has reached."""
    found: State = request.app.state.mlcd
    return found


Here = Annotated[State, Depends(state_of)]
"""A route's argument: `here: Here`."""
