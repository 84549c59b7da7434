"""A service's team, administered from here like one on a database (`mlcd.service.team.Team`); the service keeps the log."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from mlcd.core.errors import UnknownName
from mlcd.service.remote.server import Server, path_of
from mlcd.service.team import AuditEntry, Budget, Member, Per, Role, Used
from mlcd.service.team.members import check_name

PAGE = 1_000
"""Entries of the audit log that a service tells at once."""


class RemoteTeam:
    """What a team can be asked and told, over the API. The token must be an admin's: the service says if it is not."""

    def __init__(self, server: Server, page: int = PAGE) -> None:
        """`page`: how many entries of the audit log are asked for at once."""
        self._server = server
        self._page = page

    def members(self) -> list[tuple[Member, Used, float | None]]:
        """The members, by name, what each has used of their budget, and may still ask for; None for no limit."""
        told = self._server.get("/members")
        with self._server.reading():
            return [(_member(each), _used(each), each["left_usd"]) for each in told["members"]]

    def teams(self) -> dict[str, tuple[Budget, Used]]:
        """The teams, what each may spend, and what is used of that."""
        told = self._server.get("/teams")
        with self._server.reading():
            return {each["name"]: (_budget(each), _used(each)) for each in told["teams"]}

    def add(
        self, name: str, role: Role, team: str | None, budget_usd: float | None, budget_per: Per
    ) -> tuple[Member, str]:
        """A new member, and the token, which is shown this once."""
        asked = {"name": name, "role": role, "team": team, "budget_usd": budget_usd, "budget_per": budget_per}
        told = self._server.post("/members", asked)
        with self._server.reading():
            return _member(asked), str(told["token"])

    def change(self, name: str, **told: Any) -> Member:
        """Another `role`, `team`, `budget_usd` or `budget_per`. What is not named stays; None: no team, no limit."""
        answer = self._server.send("PATCH", path_of("members", self._known(name).name), told)
        with self._server.reading():
            return _member(answer)

    def renew(self, name: str) -> tuple[Member, str]:
        """A new token for a member; the old one and all sessions are void from now on."""
        member = self._known(name)
        told = self._server.post(path_of("members", name, "token"))
        with self._server.reading():
            return member, str(told["token"])

    def remove(self, name: str) -> None:
        """No member any more; their runs stay."""
        self._server.send("DELETE", path_of("members", self._known(name).name))

    def set_budget(self, team: str, usd: float | None, **per: Per) -> Budget:
        """What all runs of a team may spend together; None for no limit. `per`: as before, if it is not named."""
        check_name("team", team)
        told = {"budget_usd": usd} | {f"budget_{key}": value for key, value in per.items()}
        answer = self._server.send("PUT", path_of("teams", team), told)
        with self._server.reading():
            return _budget(answer)

    def audit(self, most: int, before: int | None = None) -> list[AuditEntry]:
        """What was done, the newest first; `before`: what is older than the entry of this number."""
        found: list[AuditEntry] = []
        while len(found) < most:
            many = min(self._page, most - len(found))
            told = self._server.get("/audit", before=found[-1].seq if found else before, limit=many)
            with self._server.reading():
                page = [_entry(each) for each in told["entries"]]
            found += page
            if len(page) < many:
                break
        return found

    def _known(self, name: str) -> Member:
        """The member of that name; one that nobody can have would be another path."""
        known = {member.name: member for member, *_ in self.members()}
        if name not in known:
            raise UnknownName("member", name, known)
        return known[name]


def _member(told: Any) -> Member:
    budget = _budget(told)
    return Member(str(told["name"]), Role(told["role"]), told["team"], budget.usd, budget.per)


def _budget(told: Any) -> Budget:
    return Budget(told["budget_usd"], Per(told["budget_per"]))


def _used(told: Any) -> Used:
    return Used(told["spent_usd"], math.inf if told["claimed_usd"] is None else told["claimed_usd"])


def _entry(told: Any) -> AuditEntry:
    words = (str(told[name]) for name in ("who", "action", "about", "outcome", "detail"))
    return AuditEntry(int(told["seq"]), datetime.fromisoformat(told["at"]), *words)
