"""What every route can use: the ledger, the members, the workers, the settings, and the feed."""

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
    """The state of one service. `members` is None in ui mode."""

    ledger: Ledger
    database: Database
    crew: Crew
    members: Members | None
    audit: Audit
    settings: Settings
    feed: Feed


def state_of(request: Request) -> State:
    """The state of a request's app."""
    state: State = request.app.state.mlcd
    return state


CurrentState = Annotated[State, Depends(state_of)]
"""A route's argument: `state: CurrentState`."""
