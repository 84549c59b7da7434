"""The short form of benchmarks/mcp_attack.py: an agent that tries to overspend passes no limit."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("mcp", reason="pip install mlcd[mcp]")
pytestmark = pytest.mark.live
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "mcp_attack.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mcp_attack", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mcp_attack", module)
    spec.loader.exec_module(module)
    return module


def test_an_agent_that_tries_to_overspend_passes_no_limit(script: ModuleType, home: Path) -> None:
    home.mkdir()
    script.users_run(home)
    outcome = asyncio.run(script.attack(home, calls=60, seed=3))
    assert outcome.passed == []
    assert outcome.answers["search: started"] > 0
    assert outcome.answers["search: refused"] > 10
    assert 0 < outcome.spent_usd <= script.BUDGET_USD


def test_what_it_would_notice_is_noticed(script: ModuleType, home: Path) -> None:
    """The check reads the ledger: a run of the agent's beyond the budget is told."""
    home.mkdir()
    script.users_run(home)
    before = script._of_the_user(home)
    with script.closing(script.sqlite3.connect(home / "ledger.db")) as database, database:
        database.execute("update runs set owner = 'agent' where name = 'user-1'")
        database.execute(
            "insert into entries (run, written_at, elapsed_s, kind, usd, body) "
            "select run, written_at, elapsed_s, kind, 99.0, body from entries where run = 'user-1' and kind = 'settled'"
        )
    outcome = script.Outcome()
    script._check_ledger(home, outcome, before)
    assert any("of $3.00 spent" in each for each in outcome.passed)
    assert "a run of the user's was changed" in outcome.passed
    assert any(each.startswith("run user-1 spent") for each in outcome.passed)
