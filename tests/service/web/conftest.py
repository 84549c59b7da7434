"""What tests of news share."""

from __future__ import annotations

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
