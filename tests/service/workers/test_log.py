"""The log of a service: no token in it, stack traces included; and a level that nobody knows is no fault."""

from __future__ import annotations

import logging
import sys

import pytest

from mlcd.service.workers.log import JsonLines, OneLine, level_of

SECRET = "mlcd_" + "a" * 43


@pytest.mark.parametrize("formatter", [OneLine("mlcd: %(message)s"), JsonLines()])
def test_a_token_in_an_error_is_masked_in_its_stack_trace_too(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"Bearer {SECRET}")
    except ValueError:
        record = logging.LogRecord("mlcd", logging.ERROR, "file", 1, "of %s", (SECRET,), sys.exc_info())
    told = formatter.format(record)
    assert "ValueError: Bearer mlcd_***" in told
    assert SECRET not in told


@pytest.mark.parametrize(
    ("name", "level"), [("info", logging.INFO), ("ERROR", logging.ERROR), ("chatty", logging.WARNING), ("", 30)]
)
def test_a_level_that_nobody_knows_is_that_of_warnings(name: str, level: int) -> None:
    assert level_of(name) == level
