"""The service of one agent: who can sign in, what its budget is, and how many runs it drives at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mlcd.core.errors import MlcdError, UserError, WrongState
from mlcd.core.ledger import Ledger
from mlcd.planners.form.jobs import job_from_text
from mlcd.service.agents.agent_client import AgentClient
from mlcd.service.agents.local_service import (
    RUNNING_AT_ONCE,
    AgentExecutor,
    AgentLimits,
    SingleAgentMembers,
    local_service,
)
from mlcd.service.agents.permissions import PermissionLevel, Permissions
from mlcd.service.agents.questions import Questions
from mlcd.service.workers.submissions import to_json

pytestmark = pytest.mark.live
JOB = """name: demo
run: python train.py
mlcd:
  work: 1M
  budget: 2
  parameters: 25M
  flops_per_sample: 12G
  search: {nodes: 1..2, instances: [c5.xlarge, g4dn.xlarge], earlier: false}
"""


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    home.mkdir()
    opened = Ledger(home / "ledger.db")
    yield opened
    opened.close()


def test_only_the_token_of_this_process_signs_in(ledger: Ledger) -> None:
    members = SingleAgentMembers(ledger.database, AgentLimits("claude", 5.0))
    mine = members.by_token(members.token)
    assert mine is not None
    assert (mine.name, str(mine.role), mine.budget_usd) == ("claude", "runner", 5.0)
    another = SingleAgentMembers(ledger.database, AgentLimits("claude", 5.0))
    for token in ("", "mlcd_wrong", "tökén", another.token):
        assert members.by_token(token) is None
    assert members.by_session(members.token) is None


def test_a_start_says_what_the_budget_is_and_keeps_what_was_spent(ledger: Ledger) -> None:
    for usd in (5.0, 7.0, 0.0):
        assert SingleAgentMembers(ledger.database, AgentLimits("claude", usd)).get("claude").budget_usd == usd
    for name in ("", "A B", "x/y", "x" * 61):
        with pytest.raises(UserError):
            SingleAgentMembers(ledger.database, AgentLimits(name, 5.0))


def test_a_second_start_that_states_no_budget_keeps_the_one_that_was_set(ledger: Ledger) -> None:
    assert SingleAgentMembers(ledger.database, AgentLimits("claude")).get("claude").budget_usd == 0.0
    SingleAgentMembers(ledger.database, AgentLimits("claude", 5.0))
    again = SingleAgentMembers(ledger.database, AgentLimits("claude"))
    assert again.get("claude").budget_usd == 5.0
    again.change("claude", budget_usd=None)
    assert SingleAgentMembers(ledger.database, AgentLimits("claude")).get("claude").budget_usd == 0.0, (
        "none is no budget, not no limit"
    )


def test_what_is_too_much_at_once_is_refused_and_claims_nothing(ledger: Ledger) -> None:
    job = to_json(job_from_text("train", JOB, {"on": "local"}), False)
    executor = AgentExecutor(ledger)
    with ExitStack() as held:
        held.callback(executor.close)
        for _ in range(RUNNING_AT_ONCE):
            held.enter_context(ledger.hold(ledger.submit("busy", job, "agent")))
        late = ledger.submit("late", job, "agent")
        with pytest.raises(WrongState, match="4 runs are under way"):
            executor.send(late)
        asked = ledger.submission(late)
        assert asked is not None
        assert asked.refused is not None


def test_a_yes_to_a_launch_is_not_one_to_a_larger_budget(home: Path) -> None:
    home.mkdir()
    with local_service(home, AgentLimits(budget_usd=10.0, count_simulated=True)) as server:
        client = AgentClient(server, Permissions(PermissionLevel.PROBE), Questions(home))
        run = client.carry_out(client.search(JOB, "train", {})).run
        assert run is not None
        while not client.watch(run, 2**62, 20).over:
            pass
        asked = client.request_approval(client.launch(run)).question
        assert asked is not None
        client.questions.agree(asked)
        question, step = client.resume(run, {"budget": "9"})
        assert step == "search"
        assert question.worst_usd == pytest.approx(9 - 0.1, abs=0.2)
        client.carry_out(question)
        while not client.watch(run, 2**62, 20).over:
            pass
        with pytest.raises(WrongState, match=r"the budget of run .* has changed"):
            client.go_on(asked)
        with pytest.raises(MlcdError, match="used already"):
            client.go_on(asked)
