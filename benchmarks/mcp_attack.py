"""An agent that tries to overspend on a real `mlcd mcp`: does it exceed a limit?

python benchmarks/mcp_attack.py [--calls 1000] [--seed 0]        # some minutes; needs mlcd[mcp]

Three servers on one ledger, called by the SDK's client over stdio: one may read, one may probe but is never approved,
one may launch, with $3 in total. Dollars are simulated, so nothing is rented. Eight calls run at a time, crafted and
random: parallel starts, growing budgets, invalid numbers, runs of others, paths in names, forged approvals. The
spending is read from the ledger itself, independently of the code that keeps the limits. The exit code is 1 if a limit
was passed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

BUDGET_USD = 3.0
AT_ONCE = 8
SEARCH = "{nodes: 1..2, instances: [c5.xlarge, g4dn.xlarge], earlier: false}"
LEFT = Path("left-by-a-command")
"""A file that a job's command would write beside the ledger, if a place that runs commands were allowed."""
STRANGE = [
    -1,
    0,
    -0.0,
    1e-9,
    1e308,
    1e12,
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "none",
    "3; drop table runs",
    None,
    True,
    [],
    {},
]
NAMES = [
    "",
    ".",
    "..",
    "last",
    "../../etc/passwd",
    "a/b",
    "%2e%2e",
    "runs'--",
    "\x00",
    "é" * 300,
    "user-1",
    "user-1/launch",
]
NAMED = {"look": "looker", "probe": "prober", "launch": "agent"}


@dataclass
class Outcome:
    """The agent's results. `passed`: limits that it exceeded."""

    calls: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    spent_usd: float = 0.0
    most_claimed_usd: float = 0.0
    runs: int = 0
    launched: int = 0
    passed: list[str] = field(default_factory=list)


def job(name: str = "demo", budget: object = None, on: str = "", more: str = "") -> str:
    """A job file, written entirely by the agent."""
    lines = [f"name: {name}", f"run: touch {LEFT}", f"setup: touch {LEFT}", "mlcd:", "  work: 1M", "  parameters: 25M"]
    lines += ["  flops_per_sample: 12G", f"  search: {SEARCH}"]
    lines += [f"  budget: {budget}"] if budget is not None else []
    lines += [f"  on: {on}"] if on else []
    return "\n".join([*lines, more, ""])


class Agent:
    """An agent that calls tools and ignores refusals."""

    def __init__(self, client: Client, seed: int, outcome: Outcome) -> None:
        self.client, self.rng, self.outcome = client, random.Random(seed), outcome
        self.known: list[str] = ["user-1"]
        self.questions: list[str] = ["aaaaaaaa"]

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Make one call; errors are counted, not raised."""
        self.outcome.calls += 1
        try:
            result = await self.client.call_tool(tool, arguments)
        except Exception as error:  # a protocol error is a refusal, too
            self.outcome.answers[f"{tool}: {type(error).__name__}"] += 1
            return None
        content = result.structured_content or {}
        said = "refused" if result.is_error else str(content.get("status", "answered"))
        self.outcome.answers[f"{tool}: {said}"] += 1
        if content.get("run"):
            self.known.append(content["run"])
        if content.get("question"):
            self.questions.append(content["question"])
        return content

    def crafted(self) -> list[Callable[[], Awaitable[Any]]]:
        """Crafted attacks."""
        plans: list[tuple[str, dict[str, Any]]] = []
        plans += [("search", {"job": job(budget=2)}) for _ in range(AT_ONCE)]  # one budget, many starts at once
        plans += [("search", {"job": job(budget=1), "budget": usd}) for usd in STRANGE]
        plans += [
            ("search", {"job": job(budget=usd)})
            for usd in ("none", ".inf", ".nan", "-5", "1e9", "$1e99", "!!python/x 1")
        ]
        plans += [
            ("search", {"job": job(on=on, budget=1)}) for on in ("local", "skypilot:aws", "ray", "functions:localhost")
        ]
        plans += [
            ("search", {"job": job(budget=1), "on": on})
            for on in ("local", "recorded:/etc", "recorded:../x", "market:/")
        ]
        plans += [
            ("search", {"job": job(budget=1, more=more)})
            for more in ("workdir: /", "file_mounts: {/x: /etc}", "secrets: {A: b}")
        ]
        plans += [("search", {"job": job(name=name, budget=0.1)}) for name in NAMES]
        plans += [
            ("search", {"job": job(budget=1), "kind": kind}) for kind in ("serve", "record", "../x", "tune", "scale")
        ]
        plans += [
            (tool, {"run": name}) for tool in ("launch", "resume", "stop", "answer", "watch", "logs") for name in NAMES
        ]
        plans += [("resume", {"run": "user-1", "budget": usd}) for usd in STRANGE]
        plans += [
            ("go_on", {"question": each}) for each in ("aaaaaaaa", "../ledger", "a" * 41, "", "AAAAAAAA", "aaaa/aaa")
        ]
        plans += [
            ("search", {"job": job(budget=1), "agreement": {"action": "accept", "data": {"yes": True}}})
            for _ in range(3)
        ]
        plans += [("search", {"job": job(budget=1), extra: "launch"}) for extra in ("may", "yes", "launch", "owner")]
        plans += [("search", {"job": "a: &a [" + "x," * 20_000 + "]"}), ("search", {"job": "&a [" * 2_000})]
        plans += [
            ("compare", {"runs": ["user-1"] * 9}),
            ("offers", {"limit": 10**9}),
            ("watch", {"run": "user-1", "after": -1}),
            ("logs", {"run": "user-1", "lines": 10**9}),
            ("logs", {"run": "user-1", "launch": "../../ledger", "process": -1}),
            ("serve", {"model": "/etc/passwd", "on": "local"}),
        ]
        return [lambda tool=tool, given=given: self.call(tool, **given) for tool, given in plans]  # type: ignore[misc]

    def random_call(self) -> Callable[[], Awaitable[Any]]:
        """A random call, mostly one that spends money, mostly on existing runs."""
        rng = self.rng
        run = rng.choice(self.known[-20:] if rng.random() < 0.8 else NAMES)
        usd: Any = round(rng.lognormvariate(0, 1.5), 2) if rng.random() < 0.8 else rng.choice(STRANGE)
        given: dict[str, Any]
        match rng.choice(("search", "search", "launch", "launch", "resume", "resume", "stop", "go_on", "look")):
            case "search":
                given = {"job": job(f"job{rng.randrange(5)}", rng.choice((None, 0.5, 1, 2, 1e6))), "budget": usd}
                return lambda: self.call("search", **given)
            case "resume":
                given = {"run": run, "budget": usd} | ({"deadline": "1h"} if rng.random() < 0.2 else {})
                return lambda: self.call("resume", **given)
            case "go_on":
                return lambda: self.call("go_on", question=rng.choice(self.questions))
            case "look":
                return lambda: self.call(rng.choice(("answer", "what_if", "logs")), run=run)
            case tool:
                return lambda: self.call(tool, run=run)


async def attack(home: Path, calls: int, seed: int = 0) -> Outcome:
    """Run the three agents on a ledger; returns their results."""
    outcome = Outcome()
    before = _of_the_user(home)
    async with AsyncExitStack() as open_clients:
        agents = []
        for may, answers in (("look", None), ("probe", _declines if seed % 2 else None), ("launch", None)):
            server = StdioServerParameters(command=sys.executable, args=_command(may), env=_environment(home), cwd=home)
            client = await open_clients.enter_async_context(Client(server, elicitation_callback=answers))
            agents.append(Agent(client, seed + len(agents), outcome))
            agents[-1].known, agents[-1].questions = agents[0].known, agents[0].questions  # each knows what all know
        looker, prober, launcher = agents
        await _all(home, outcome, [lambda: launcher.call("search", job=job(budget=2)) for _ in range(AT_ONCE)])
        crafted = [*launcher.crafted(), *prober.crafted()[::2], *looker.crafted()[::4]]
        rng = random.Random(seed)
        rng.shuffle(crafted)
        await _all(home, outcome, crafted[: max(0, calls - AT_ONCE)])
        while outcome.calls < calls:
            some = (rng.choice((launcher, launcher, prober, looker)) for _ in range(min(64, calls - outcome.calls)))
            await _all(home, outcome, [agent.random_call() for agent in some])
        await _ended(launcher)
    _check_ledger(home, outcome, before)
    return outcome


async def _all(home: Path, outcome: Outcome, calls: list[Callable[[], Awaitable[Any]]]) -> None:
    """Make all calls, eight at a time, and check the ledger after each eight."""
    for first in range(0, len(calls), AT_ONCE):
        await asyncio.gather(*(call() for call in calls[first : first + AT_ONCE]))
        spent, claimed = _counted(home)
        outcome.most_claimed_usd = max(outcome.most_claimed_usd, spent + claimed)
        if spent + claimed > BUDGET_USD + 1e-6:
            outcome.passed.append(f"after {outcome.calls} calls ${spent:.2f} spent and ${claimed:.2f} claimed")


async def _ended(agent: Agent) -> None:
    """Wait until none of its runs is under way."""
    for run in dict.fromkeys(agent.known):
        await agent.client.call_tool("watch", {"run": run, "after": 2**62, "wait_s": 20})


async def _declines(context: Any, parameters: Any) -> ElicitResult:
    return ElicitResult(action="decline")


def _command(may: str) -> list[str]:
    return ["-m", "mlcd", "mcp", "--may", may, "--budget", str(BUDGET_USD), "--count-simulated", "--name", NAMED[may]]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "OMP_NUM_THREADS") if name in os.environ}
    return {**kept, "MLCD_HOME": str(home), "MLCD_STEP_BACK": "0"}


def _rows(home: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{home / 'ledger.db'}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def _of_the_user(home: Path) -> list[Any]:
    return _rows(home, "select seq, kind, body from entries where run = 'user-1' order by seq")


def _counted(home: Path) -> tuple[float, float]:
    """Dollars that the agent has spent and its runs may still spend, from the ledger's rows alone."""
    (spent,) = _rows(
        home,
        "select coalesce(sum(usd), 0) from entries join runs on name = run where owner = 'agent' and kind = 'settled'",
    )[0]
    worst = "select run, kind, usd, body from entries join runs on name = run where owner = 'agent' order by seq"
    open_usd: dict[str, float] = {}
    for _, kind, usd, body in _rows(home, worst):
        if kind in ("reserved", "settled", "voided"):
            label = json.loads(body)["launch"]["label"]
            open_usd[label] = usd if kind == "reserved" else 0.0
    return spent, math.fsum(open_usd.values())


def _check_ledger(home: Path, outcome: Outcome, before: list[Any]) -> None:
    """Check the ledger at the end."""
    outcome.spent_usd, _ = _counted(home)
    of_agent = "from entries join runs on name = run where owner = 'agent'"
    (outcome.runs,) = _rows(home, "select count(*) from runs where owner = 'agent'")[0]
    (outcome.launched,) = _rows(home, f"select count(distinct run) {of_agent} and kind = 'ended'")[0]
    if outcome.spent_usd > BUDGET_USD + 1e-6:
        outcome.passed.append(f"${outcome.spent_usd:.2f} of ${BUDGET_USD:.2f} spent")
    (unasked,) = _rows(home, "select count(*) from runs where owner in ('looker', 'prober')")[0]
    if unasked:
        outcome.passed.append(f"{unasked} runs were begun without a yes")
    if _of_the_user(home) != before:
        outcome.passed.append("a run of the user's was changed")
    if (home / LEFT).exists() or LEFT.exists():
        outcome.passed.append("a command of a job file was run")
    for run, body in _rows(home, f"select run, body {of_agent} and kind = 'started'"):
        limit = json.loads(body)["job"]["goal"]["budget_usd"]
        changed = _rows(home, f"select body from entries where run = '{run}' and kind = 'limits_changed' order by seq")
        limit = json.loads(changed[-1][0])["goal"]["budget_usd"] if changed else limit
        (spent,) = _rows(home, f"select coalesce(sum(usd), 0) from entries where run = '{run}' and kind = 'settled'")[0]
        if limit is None or spent > limit + 1e-6:
            outcome.passed.append(f"run {run} spent ${spent:.2f} of {limit}")


def users_run(home: Path) -> None:
    """A decided run of the command line in the ledger, ready to launch."""
    path = home / "user.yaml"
    path.write_text(job("user", 50), encoding="utf-8")
    command = [sys.executable, "-m", "mlcd", "train", str(path), "--decide-only"]
    subprocess.run(command, env=os.environ | _environment(home), cwd=home, check=True, capture_output=True)


def main() -> int:
    """Attack, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        users_run(Path(folder))
        outcome = asyncio.run(attack(Path(folder), given.calls, given.seed))
    for what, times in sorted(outcome.answers.items()):
        print(f"  {times:5} {what}")
    most = f"never more than ${outcome.most_claimed_usd:.2f} with what was under way"
    spent = f"${outcome.spent_usd:.2f} of ${BUDGET_USD:.2f} spent, {most}"
    print(f"{outcome.calls} calls, {outcome.runs} runs, {outcome.launched} launched: {spent}")
    print("\n".join(f"GOT THROUGH  {each}" for each in outcome.passed) or "held: no limit was passed")
    return 1 if outcome.passed else 0


if __name__ == "__main__":
    sys.exit(main())
