"""`mlcd mcp`, by the SDK's own client: over stdio and HTTP, on this machine's ledger and against a service."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from served import a_team

from mlcd.cli.mcp import TOKEN, opened_agent_client
from mlcd.cli.mcp import mcp as command
from mlcd.core.ledger import Ledger
from mlcd.service.agents.questions import Questions

mcp = pytest.importorskip("mcp", reason="pip install mlcd[mcp]")
mcp_server = pytest.importorskip("mlcd.service.agents.server").mcp_server
pytestmark = pytest.mark.live
Mlcd = Callable[..., Any]
Call = Callable[..., Awaitable[Any]]
COUNTED = ("--count-simulated", "--budget", "5")
JOB = """name: demo
run: python train.py
mlcd:
  work: 1M
  parameters: 25M
  flops_per_sample: 12G
  search: {nodes: 1..2, instances: [c5.xlarge, g4dn.xlarge], earlier: false}
"""
REAL = """name: real
run: |
  python3 - <<'END'
  import time
  for step in range(1, 300):
      time.sleep(0.02)
      print(f"samples {step * 10}", flush=True)
  END
mlcd: {work: 3000, on: local, budget: 2, search: {nodes: 1..1}, report: 'samples (?P<samples>\\d+)'}
"""
LOOKING = {"allowance", "plan", "runs", "answer", "compare", "what_if", "offers", "watch", "logs"}
SPENDING = {"search", "launch", "resume", "go_on", "stop"}


class Refused(Exception):
    """A tool that says why not."""


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "OMP_NUM_THREADS") if name in os.environ}
    return {**kept, "MLCD_HOME": str(home), "MLCD_STEP_BACK": "0"}


def answered(client: Any) -> Call:
    """Calls a tool: its structured answer, or the line that it is refused with."""

    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        if result.is_error:
            (said,) = result.content
            assert "\n" not in said.text or "validation error" in said.text
            raise Refused(said.text)
        return result.structured_content

    return call


@asynccontextmanager
async def connected(*arguments: str, **options: Any) -> AsyncIterator[Any]:
    """A client of what `mlcd mcp` serves with these arguments, in this process: to start one of its own takes long."""
    terms = command.make_context("mcp", list(arguments)).params
    del terms["http"]
    with opened_agent_client(**terms) as agent_client:
        async with mcp.Client(mcp_server(agent_client), **options) as client:
            yield client


@asynccontextmanager
async def stdio(home: Path, *arguments: str, **options: Any) -> AsyncIterator[Any]:
    """A client of `mlcd mcp`, which runs in a process of its own."""
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "mlcd", "mcp", *arguments], env=environment(home), cwd=home.parent
    )
    async with mcp.Client(server, **options) as client:
        yield client


@contextmanager
def http(home: Path, *arguments: str, token: str) -> Iterator[str]:
    """The address of `mlcd mcp --http`."""
    command = [sys.executable, "-m", "mlcd", "mcp", "--http", "0", *arguments]
    given = os.environ | environment(home) | {TOKEN: token}
    with subprocess.Popen(command, env=given, stderr=subprocess.PIPE, text=True, cwd=home.parent) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split(" at ")[1].partition(";")[0]
        finally:
            process.terminate()


def answers(*given: tuple[str, dict[str, Any] | None]) -> Callable[[Any, Any], Awaitable[Any]]:
    """A user who answers one question after the other so."""
    from mcp_types import ElicitResult

    left = iter(given)

    async def answer(context: Any, question: Any) -> Any:
        assert "at most $" in question.message
        action, content = next(left)
        return ElicitResult(action=action, content=content)

    return answer


async def over(call: Call, run: str) -> Any:
    """Watch a run to its end; the last that was said of it."""
    after = 0
    while not (watched := await call("watch", run=run, after=after, wait_s=30))["over"]:
        after = watched["last"]
    return watched


def runs_of(home: Path) -> list[str]:
    ledger = Ledger(home / "ledger.db")
    try:
        return list(ledger.owners())
    finally:
        ledger.close()


@pytest.mark.parametrize(
    ("may", "tools"), [("look", LOOKING), ("probe", LOOKING | SPENDING), ("launch", LOOKING | SPENDING)]
)
def test_an_agent_is_shown_what_it_may_do_with_typed_answers(home: Path, may: str, tools: set[str]) -> None:
    async def story() -> None:
        async with connected("--may", may) as client:
            found = (await client.list_tools()).tools
            assert {tool.name for tool in found} == tools
            for tool in found:
                assert tool.description
                assert tool.output_schema["properties"]
                assert tool.annotations.read_only_hint is (tool.name in LOOKING)
            call = answered(client)
            assert (await call("allowance"))["may"] == may
            seen = await call("plan", job=JOB, budget=5)
            assert seen["configurations"] == 4
            assert 0 < seen["first"][0]["at_most_usd"] < 5
        assert runs_of(home) == []

    asyncio.run(story())


def test_free_searches_take_no_yes_and_are_followed_to_their_answer(home: Path) -> None:
    async def story() -> None:
        async with connected("--may", "probe") as client:
            call = answered(client)
            run = (await call("search", job=JOB, budget=5))["run"]
            assert (await over(call, run))["status"] == "decided"
            said = await call("answer", run=run)
            assert said["owner"] == "agent"
            assert f"{said['chosen']}: " in said["sentence"]
            for budget in ("0.01", 0.01, "$0.01"):  # a number, as everywhere else, or words
                assert (await call("what_if", run=run, budget=budget))["chosen"] is None
            assert (await call("what_if", run=run, budget=5, confidence=0.9))["chosen"] is not None
            assert (await call("launch", run=run))["status"] == "started"
            assert (await over(call, run))["status"] == "finished"
            compared = await call("compare", runs=[run, run])
            assert [each["run"] for each in compared["runs"]] == [run, run]
            assert [each["values"][0] for each in compared["told"] if each["name"] == "Status"] == ["finished"]
            assert compared["jobs_differ"] == []

    asyncio.run(story())


def test_without_a_person_nothing_that_counts_is_started(home: Path) -> None:
    async def story() -> None:
        async with connected("--may", "probe", *COUNTED) as client:
            call = answered(client)
            asked = await call("search", job=JOB, budget=2)
            assert (asked["status"], asked["run"], asked["worst_usd"]) == ("waiting_for_yes", None, 2)
            name = asked["question"]
            assert f"mlcd yes {name}" in asked["say"]
            with pytest.raises(Refused, match="nobody has said yes"):
                await call("go_on", question=name)
            assert runs_of(home) == []

            Questions(home).agree(name)  # as `mlcd yes` does
            run = (await call("go_on", question=name))["run"]
            with pytest.raises(Refused, match="used already"):
                await call("go_on", question=name)
            assert (await over(call, run))["status"] == "decided"
            launch = await call("launch", run=run)
            assert launch["status"] == "waiting_for_yes"
            assert launch["worst_usd"] <= 2
            assert (await over(call, run))["status"] == "decided"

    asyncio.run(story())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_person_is_asked_in_the_assistant_where_it_can_ask(home: Path, mode: str) -> None:
    async def story() -> None:
        no: list[Any] = [("decline", None), ("accept", {"yes": False}), ("cancel", None)]
        yes: Any = ("accept", {"yes": True})
        user = answers(*no, yes, yes)
        options: dict[str, Any] = {"elicitation_callback": user, "mode": mode}
        opened = partial(stdio, home) if mode == "auto" else connected
        async with opened("--may", "probe", *COUNTED, **options) as client:
            call = answered(client)
            for _ in no:
                assert (await call("search", job=JOB, budget=2))["status"] == "declined"
            assert runs_of(home) == []
            run = (await call("search", job=JOB, budget=2))["run"]
            await over(call, run)
            assert (await call("launch", run=run))["status"] == "started"
            assert (await over(call, run))["status"] == "finished"

    asyncio.run(story())


async def is_refused(call: Callable[..., Awaitable[Any]], given: Any, **again: Any) -> bool:
    """Whether a call starts nothing: it is an error, or a question once more."""
    from mcp_types import InputRequiredResult

    try:
        result = await call(given, **again)
    except mcp.MCPError:
        return True
    return isinstance(result, InputRequiredResult) or bool(result.is_error)


def test_a_yes_that_is_sent_again_starts_nothing(home: Path) -> None:
    async def story() -> None:
        from mcp_types import ElicitResult, InputRequiredResult

        async with connected("--may", "probe", *COUNTED, elicitation_callback=answers()) as client:
            again = partial(client.session.call_tool, "search", allow_input_required=True)
            given = {"job": JOB, "budget": 0.5}
            asked = await again(given)
            assert isinstance(asked, InputRequiredResult)
            yes = {name: ElicitResult(action="accept", content={"yes": True}) for name in asked.input_requests or {}}
            refused = partial(is_refused, again)
            assert await refused({**given, "budget": 5}, input_responses=yes, request_state=asked.request_state)
            first = await again(given, input_responses=yes, request_state=asked.request_state)
            assert first.structured_content["status"] == "started"
            for state in (asked.request_state, None):
                assert await refused(given, input_responses=yes, request_state=state)
            assert len(runs_of(home)) == 1

    asyncio.run(story())


def test_a_run_on_real_processes_outlives_the_server(home: Path, mlcd: Mlcd) -> None:
    async def story() -> None:
        async with stdio(home, "--may", "launch", "--places", "local", "--budget", "3") as client:
            call = answered(client)
            run = (await call("search", job=REAL))["run"]
            assert (await call("allowance"))["left_usd"] == pytest.approx(1, abs=0.01)  # its whole budget is claimed
            assert (await over(call, run))["status"] == "decided"
            probe = await call("logs", run=run, lines=2, launch=1)
            assert probe["text"].splitlines()[-1].startswith("samples ")
            assert (len(probe["text"].splitlines()), probe["earlier"], probe["launch"]) == (2, True, 1)
            with pytest.raises(Refused, match="no such log"):
                await call("logs", run=run, launch=99)
            assert (await call("launch", run=run))["status"] == "started"

    asyncio.run(story())
    attached = mlcd("attach", "real-1", "-o", "json")
    assert attached.code == 0
    assert attached.document["status"] == "finished"
    assert attached.document["provenance"] == "live"


def test_an_assistant_that_is_not_trusted_to_ask_is_not_asked(home: Path) -> None:
    async def story() -> None:
        terminal = ("--may", "probe", *COUNTED, "--ask", "terminal")
        async with connected(*terminal, elicitation_callback=answers(("accept", {"yes": True}))) as client:
            assert (await answered(client)("search", job=JOB, budget=2))["status"] == "waiting_for_yes"

    asyncio.run(story())


def test_a_restart_and_a_second_server_find_spent_what_was_spent(home: Path) -> None:
    async def left(*arguments: str) -> float:
        async with connected("--may", "launch", *COUNTED, *arguments) as client:
            return float((await answered(client)("allowance"))["left_usd"])

    async def story() -> None:
        async with stdio(home, "--may", "launch", *COUNTED) as client:
            call = answered(client)
            run = (await call("search", job=JOB, budget=4))["run"]
            await over(call, run)
            spent = (await call("answer", run=run))["spent_usd"]
            async with connected():  # a second one that states no budget takes none away
                assert (await call("allowance"))["left_usd"] == pytest.approx(5 - spent)
            for tool, given in (("search", {"job": JOB}), ("resume", {"run": run})):
                with pytest.raises(Refused, match=r"agent has \$4\.\d\d left of \$5\.00"):
                    await call(tool, **given, budget=5.5)
        assert await left() == pytest.approx(5 - spent)
        assert await left("--name", "another") == 5

    asyncio.run(story())


def test_it_acts_on_its_own_runs_alone(mlcd: Mlcd, home: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert mlcd("train", tmp_path / "job.yaml", "--decide-only", "--budget", "5").code == 0

    async def story() -> None:
        async with connected("--may", "launch", "--budget", "5") as client:
            call = answered(client)
            assert (await call("answer", run="demo-1"))["owner"] is None
            for tool in ("launch", "resume", "stop"):
                with pytest.raises(Refused, match="belongs to"):
                    await call(tool, run="demo-1")
                with pytest.raises(Refused):
                    await call(tool, run="last")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"on": "local"}, "unknown place 'local'"),
        ({"on": "recorded:/etc"}, "unknown recording"),
        ({"job": f"{JOB}workdir: /\n", "on": "simulated"}, None),
        ({"job": "run: [", "on": "simulated"}, "job.yaml:1"),
        ({"budget": -1}, "budget"),
        ({"kind": "serve"}, "kind"),
    ],
)
def test_what_a_job_file_asks_for_is_kept_to_the_places_that_were_named(
    home: Path, arguments: dict[str, Any], why: str | None
) -> None:
    async def story() -> None:
        async with connected("--may", "launch") as client:
            if why is None:  # a simulated place runs no command and reads no folder
                assert (await answered(client)("search", **{"job": JOB, "budget": 1} | arguments))[
                    "status"
                ] == "started"
                return
            with pytest.raises(Refused, match=why):
                await answered(client)("search", **{"job": JOB, "budget": 1} | arguments)

    asyncio.run(story())


def test_over_http_it_takes_the_token_and_answers_no_other_site(home: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def story(url: str) -> None:
        allowed = httpx2.AsyncClient(headers={"Authorization": "Bearer secret"}, timeout=60)
        async with allowed as web, mcp.Client(streamable_http_client(url, http_client=web)) as client:
            call = answered(client)
            run = (await call("search", job=JOB, budget=5))["run"]
            assert (await over(call, run))["status"] == "decided"
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accepted = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=accepted) as stranger:
            assert (await stranger.post(url, json=body)).status_code == 401
            wrong = {"Authorization": "Bearer secre\u0074x"}
            assert (await stranger.post(url, json=body, headers=wrong)).status_code == 401
            rebound = {"Authorization": "Bearer secret", "Host": "evil.example"}
            assert (await stranger.post(url, json=body, headers=rebound)).status_code in (403, 421)
            elsewhere = {"Authorization": "Bearer secret", "Origin": "https://evil.example"}
            assert (await stranger.post(url, json=body, headers=elsewhere)).status_code == 403

    with http(home, "--may", "probe", token="secret") as url:
        asyncio.run(story(url))


def test_against_a_service_the_members_role_and_budget_count(home: Path, mlcd: Mlcd) -> None:
    async def story(url: str, token: str) -> None:
        async with connected("--may", "launch", "--service", url, "--token", token) as client:
            call = answered(client)
            assert (await call("allowance"))["left_usd"] == 1
            with pytest.raises(Refused, match=r"poor has \$1\.00 left of \$1\.00"):
                await call("search", job=JOB, budget=2)
            run = (await call("search", job=JOB, budget=0.9))["run"]
            assert (await over(call, run))["status"] in ("decided", "infeasible")
            assert (await call("answer", run=run))["owner"] == "poor"
            with pytest.raises(Refused, match="left of"):
                await call("resume", run=run, budget=2)

    with a_team(home) as team:
        asyncio.run(story(team.url, team.tokens["poor"]))
        there = ("mcp", "--service", team.url, "--token")
        assert "'ada' has no budget; set one" in mlcd(*there, team.tokens["ada"], "--may", "probe").complaint
        assert "is an admin; add a member for the agent" in mlcd(*there, team.tokens["root"]).complaint
        assert "is a viewer; --may probe needs a runner" in mlcd(*there, team.tokens["vic"], "--may", "probe").complaint
        assert "--budget: with --service" in mlcd(*there, team.tokens["poor"], "--budget", "5").complaint


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--may", "launch", "--places", "local"), "give the agent a budget"),
        (("--may", "probe", "--count-simulated"), "give the agent a budget"),
        (("--may", "look", "-y"), "-y works only with --may probe"),
        (("--places", "moon"), "unknown place 'moon'"),
        (("--name", "Not A Name"), "a name has up to 60 small letters"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused_in_a_line(mlcd: Mlcd, arguments: tuple[str, ...], why: str) -> None:
    assert why in mlcd("mcp", *arguments).complaint


def test_without_the_package_it_says_what_to_install(mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install 'mlcd[mcp]'" in mlcd("mcp").complaint
