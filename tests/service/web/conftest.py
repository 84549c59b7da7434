"""What tests of sign-in share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def small() -> Iterator[Any]:
    """A provider on loopback that says whatever a test wants."""
    from small_provider import small_provider  # not above: it imports what other tests need not

    with small_provider() as small:
        yield small
