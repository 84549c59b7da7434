from __future__ import annotations

from pathlib import Path

import pytest
from mlcd_fixtures.ledgers import LedgerContract


class TestOnSQLite(LedgerContract):
    @pytest.fixture
    def where(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'state' / 'ledger.db'}"


class TestOnPostgreSQL(LedgerContract):
    @pytest.fixture
    def where(self, postgres_url: str) -> str:
        return postgres_url
