"""What tests of news and of sign-in share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from posting import Post, web_receiver
from stage import staged


@pytest.fixture
def receiver():
    with web_receiver() as found:
        yield found


@pytest.fixture
def post(tmp_path):
    with staged(tmp_path / "home", news_every_s=1e6) as stage:
        yield Post(stage)


@pytest.fixture
def small() -> Iterator[Any]:
    """A provider on loopback that says whatever a test wants."""
    from small_provider import small_provider  # not above: it imports what other tests need not

    with small_provider() as small:
        yield small
