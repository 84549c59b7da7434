"""Small matrices are multiplied fastest by one thread: several wait for each other longer than they work."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[Any]:
    """Inside, NumPy and SciPy use one thread."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limited


@lru_cache
def _libraries() -> ThreadpoolController:
    """Once: to find them takes longer than a search among a few configurations."""
    return ThreadpoolController()
