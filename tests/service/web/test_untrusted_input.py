"""The API for reading, on SQLite and on PostgreSQL: the same contract, the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.api import Api, ReadingContract, fill
from stage import API, Stage, staged

from mlcd.core.ledger import Ledger

EXAMPLES = {
    name: files("mlcd.service.web").joinpath("examples", f"{name}.yaml").read_text(encoding="utf-8")
    for name in ("scale", "tune", "functions")
}


@dataclass(frozen=True)
class Asked:
    stage: Stage

    @property
    def ledger(self) -> Ledger:
        return self.stage.state.ledger

    def get(self, path: str, **headers: str) -> Any:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.stage.ask("GET", f"{API}{path}", headers=told)


@contextmanager
def filled(home: Path, where: Any = None) -> Iterator[Api]:
    """A service over a ledger with a run of every kind."""
    with pytest.MonkeyPatch.context() as patch, staged(home, where, mode="ui") as stage:
        patch.setenv("MLCD_HOME", str(home))
        fill(stage.state.ledger, home / "recordings", EXAMPLES)
        stage.look()
        yield Asked(stage)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    where = None
    if request.param == "postgresql":
        where = request.getfixturevalue("running_postgres").new_database()
    with filled(tmp_path_factory.mktemp(request.param), where) as api:
        yield api


class TestReading(ReadingContract):
    """On both databases."""
