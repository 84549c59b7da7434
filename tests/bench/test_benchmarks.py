"""Benchmarks are run by hand and rarely: what they import of MLCD is checked here, without running them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import mlcd

ROOT = Path(mlcd.__file__).parents[1]
OURS = ("mlcd", "mlcd_bench", "mlcd_box", "mlcd_fixtures", "benchmarks")


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda path: path.stem)
def test_every_import_of_a_benchmark_exists(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in OURS:
            continue
        module = importlib.import_module(str(node.module))
        for alias in node.names:
            if not hasattr(module, alias.name):
                importlib.import_module(f"{node.module}.{alias.name}")
