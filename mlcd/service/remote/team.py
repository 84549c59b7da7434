"""Administration of a service's team over the API, with the interface of `mlcd.service.team.administration.Team`."""

import math
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from mlcd.core.errors import UnknownName
from mlcd.service.remote.server import Server, path_of
from mlcd.service.sign_in.identities import Account
from mlcd.service.team.administration import ALL, AuditedAction, AuditFilter
from mlcd.service.team.allowance import Used
from mlcd.service.team.budget import Budget, Per
from mlcd.service.team.members import Member, Role, check_name

PAGE = 1_000


class RemoteTeam:
    """A team over the API, for an admin. `page`: how many entries of the audit log are fetched at once."""

    def __init__(self, server: Server, page: int = PAGE) -> None:
        self._server, self._page = server, page

    def members(self) -> list[tuple[Member, Used, float | None]]:
        """The members by name, with what they have used and their remaining budget; None for no limit."""
        answer = self._server.get("/members")
        with self._server.reading():
            return [(_member(each), _used(each), each["left_usd"]) for each in answer["members"]]

    def teams(self) -> dict[str, tuple[Budget, Used]]:
        """The teams, their budgets, and what is used of them."""
        answer = self._server.get("/teams")
        with self._server.reading():
            return {each["name"]: (_budget(each), _used(each)) for each in answer["teams"]}

    def add(self, name: str, role: Role, team: str | None, usd: float | None, per: Per) -> tuple[Member, str]:
        """Add a member; also returns the token, which is shown only once."""
        body = {"name": name, "role": role, "team": team, "budget_usd": usd, "budget_per": per}
        answer = self._server.post("/members", body)
        with self._server.reading():
            return _member(body), str(answer["token"])

    def change(self, name: str, **changes: Any) -> Member:
        """Change `role`, `team`, `budget_usd` or `budget_per`; the others stay. None: no team, no limit."""
        answer = self._server.send("PATCH", path_of("members", self._member_named(name).name), changes)
        with self._server.reading():
            return _member(answer)

    def renew(self, name: str) -> tuple[Member, str]:
        """Make a new token for a member; the old one and all sessions become invalid."""
        member = self._member_named(name)
        answer = self._server.post(path_of("members", name, "token"))
        with self._server.reading():
            return member, str(answer["token"])

    def remove(self, name: str) -> None:
        """Remove a member; their runs stay."""
        self._server.send("DELETE", path_of("members", self._member_named(name).name))

    def link(self, name: str, account: Account) -> None:
        """Link a sign-in provider's account to a member."""
        self._server.send("PUT", path_of("members", self._member_named(name).name, "account"), asdict(account))

    def unlink(self, name: str) -> None:
        """Remove the link between a member and their account at the sign-in provider."""
        self._server.send("DELETE", path_of("members", self._member_named(name).name, "account"))

    def set_budget(self, team: str, usd: float | None, **per: Per) -> Budget:
        """Set the budget of all runs of a team together; None for no limit. Without `per`, the period stays."""
        check_name("team", team)
        body = {"budget_usd": usd} | {f"budget_{key}": value for key, value in per.items()}
        answer = self._server.send("PUT", path_of("teams", team), body)
        with self._server.reading():
            return _budget(answer)

    def audit(self, most: int, before: int | None = None, only: AuditFilter = ALL) -> list[AuditedAction]:
        """The audit log, the newest first; `before`: only entries before this number."""
        entries: list[AuditedAction] = []
        words = {each.name: getattr(only, each.name) for each in fields(only)}
        chosen = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in words.items()}
        while len(entries) < most:
            limit = min(self._page, most - len(entries))
            answer = self._server.get("/audit", before=entries[-1].seq if entries else before, limit=limit, **chosen)
            with self._server.reading():
                page = [_entry(each) for each in answer["entries"]]
            entries += page
            if len(page) < limit:
                break
        return entries

    def _member_named(self, name: str) -> Member:
        """The member of that name. Checked first, since an impossible name would change the path."""
        known = {member.name: member for member, *_ in self.members()}
        if name not in known:
            raise UnknownName("member", name, known)
        return known[name]


def _member(data: Any) -> Member:
    budget = _budget(data)
    return Member(str(data["name"]), Role(data["role"]), data["team"], budget.usd, budget.per)


def _budget(data: Any) -> Budget:
    return Budget(data["budget_usd"], Per(data["budget_per"]))


def _used(data: Any) -> Used:
    return Used(data["spent_usd"], math.inf if data["claimed_usd"] is None else data["claimed_usd"])


def _entry(data: Any) -> AuditedAction:
    words = (str(data[name]) for name in ("who", "action", "about", "outcome", "detail"))
    return AuditedAction(int(data["seq"]), datetime.fromisoformat(data["at"]), *words)
