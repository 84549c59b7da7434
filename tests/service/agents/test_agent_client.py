"""What an agent's requests become: what counts, what a yes covers, and what is refused before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlcd.core.errors import UserError, WrongState
from mlcd.service.agents.agent_client import AgentClient
from mlcd.service.agents.permissions import PermissionLevel, Permissions
from mlcd.service.agents.questions import Question, Questions, Request
from mlcd.service.remote.server import NotAgreed

FORESEEN = {
    "job": "demo",
    "goal_words": "fastest",
    "configurations": 4,
    "types": [],
    "on": "skypilot:aws",
    "budget_usd": None,
    "left_usd": None,
}
DECIDED = {
    "owner": "agent",
    "on": "skypilot:aws",
    "status": "decided",
    "chosen": "2 x g5.xlarge",
    "budget_usd": 5.0,
    "spent_usd": 1.0,
    "provenance": "live",
}


@dataclass
class Scripted:
    """A service that has one decided run, and allows these places."""

    places: tuple[str, ...] = ("skypilot",)
    summary: dict[str, Any] = field(default_factory=lambda: dict(DECIDED))
    foreseen: dict[str, Any] = field(default_factory=lambda: dict(FORESEEN))
    asks: bool = False
    sent: list[dict[str, Any]] = field(default_factory=list)

    def get(self, path: str, **query: Any) -> Any:
        if path == "/me":
            return {"name": "agent", "places": list(self.places)}
        return {"summary": self.summary, "answer": {"sentence": "It is decided."}}

    def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/checks":
            return self.foreseen
        self.sent.append(body)
        if self.asks and "yes" not in body:
            raise NotAgreed("It rents.", "up to $5.00")
        return {"run": "demo-1"}

    @contextmanager
    def reading(self) -> Iterator[None]:
        yield


def client_at(service: Scripted, home: Path) -> AgentClient:
    return AgentClient(service, Permissions(PermissionLevel.PROBE), Questions(home))  # type: ignore[arg-type]


def test_a_search_for_real_money_counts_also_where_the_member_has_no_limit(tmp_path: Path) -> None:
    service = Scripted()
    with pytest.raises(UserError, match="state a budget"):
        client_at(service, tmp_path).search("name: demo", "train", {})
    service.foreseen["budget_usd"] = 5.0
    question = client_at(service, tmp_path).search("name: demo", "train", {})
    assert (question.counts, question.worst_usd) == (True, 5.0)


@pytest.mark.parametrize("on", ["simulated", "recorded:mine", "functions:simulated"])
def test_a_search_that_costs_nothing_takes_no_budget(tmp_path: Path, on: str) -> None:
    service = Scripted()
    service.foreseen["on"] = on
    assert not client_at(service, tmp_path).search("name: demo", "train", {}).counts


def test_what_was_agreed_to_is_not_asked_for_once_more_by_the_service(tmp_path: Path) -> None:
    service = Scripted(asks=True)
    question = Question("words", 4.0, Request("/runs/demo-1/resume", {"budget": "5"}))
    assert client_at(service, tmp_path).carry_out(question).status == "started"
    assert service.sent == [{"budget": "5"}, {"budget": "5", "yes": True}]


@pytest.mark.parametrize(("changed", "what"), [({"budget_usd": 9.0}, "budget"), ({"chosen": "8 x p4d"}, "decision")])
def test_a_yes_is_for_the_decision_and_the_budget_that_the_person_saw(
    tmp_path: Path, changed: dict[str, Any], what: str
) -> None:
    service = Scripted()
    client = client_at(service, tmp_path)
    question = client.launch("demo-1")
    assert question.words.startswith("Launch of 2 x g5.xlarge")
    service.summary |= changed
    with pytest.raises(WrongState, match=f"the {what} of run .* has changed since the question"):
        client.carry_out(question)
    assert service.sent == []


def test_runs_at_places_that_are_not_allowed_any_more_are_left_alone(tmp_path: Path) -> None:
    client = client_at(Scripted(places=("simulated", "local")), tmp_path)
    with pytest.raises(UserError, match="on skypilot:aws; you may only use simulated, local"):
        client.launch("demo-1")


def test_a_yes_to_no_question_of_this_call_starts_nothing(tmp_path: Path) -> None:
    """Two connections may number their calls alike: the first answer takes what the second was asked."""
    pytest.importorskip("mcp", reason="pip install mlcd[mcp]")
    from mcp.server.elicitation import AcceptedElicitation
    from mcp.server.mcpserver.exceptions import ToolError

    from mlcd.service.agents.tools import Agreement, Approvals, _carry_out_if_approved

    service = Scripted()
    client = client_at(service, tmp_path)
    capabilities = SimpleNamespace(elicitation=object())
    call: Any = SimpleNamespace(
        request_id=5, request_state=None, input_responses=None, client_capabilities=capabilities
    )
    agreed = AcceptedElicitation(data=Agreement(yes=True))
    question = Question("words", 4.0, Request("/runs", {}))
    with pytest.raises(ToolError, match="ask again"):
        asyncio.run(_carry_out_if_approved(client, call, question, "launch", agreed, Approvals()))
    assert service.sent == []
    asyncio.run(_carry_out_if_approved(client, call, question, "launch", agreed, Approvals({5: question.words})))
    assert service.sent == [{}]


def test_a_long_job_file_is_agreed_to_at_a_terminal_where_all_of_it_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="pip install mlcd[mcp]")
    from mcp.server.elicitation import AcceptedElicitation

    from mlcd.service.agents.agent_client import approval_text
    from mlcd.service.agents.tools import Agreement, Approvals, _ask_in_assistant, _carry_out_if_approved

    service = Scripted()
    client = client_at(service, tmp_path)
    call: Any = SimpleNamespace(
        request_id=5, request_state=None, input_responses=None, client_capabilities=SimpleNamespace(elicitation=1)
    )
    question = Question("words", 4.0, Request("/runs", {}), "run: true\n" + "# ...\n" * 1_000 + "setup: the last line")
    yes = Approvals()
    assert asyncio.run(_ask_in_assistant(client, call, yes, lambda: (question, "launch"))) == Agreement(yes=False)
    agreed = AcceptedElicitation(data=Agreement(yes=True))
    begun = asyncio.run(_carry_out_if_approved(client, call, question, "launch", agreed, yes))
    assert service.sent == []
    assert "mlcd yes" in begun.say
    assert "setup: the last line" in approval_text(question)
