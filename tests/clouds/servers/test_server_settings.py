"""Knobs become settings, and invalid ones are reported."""

from __future__ import annotations

import pytest

from mlcd.clouds.servers.__main__ import _arguments
from mlcd.clouds.servers.settings import Settings
from mlcd.core.errors import UserError


def test_knobs_that_are_not_named_are_as_usual():
    assert Settings.of({"batch": 8, "threads": 2.0}) == Settings(threads=2, batch=8)


def test_the_command_line_says_the_same():
    settings = Settings(2, 8, 1.5, 0.5, "int8")
    given = _arguments().parse_args(["model.onnx", *settings.arguments])
    assert settings == Settings(given.threads, given.batch, given.max_wait_ms, given.memory_gb, given.precision)


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"thread": 1}, "did you mean 'threads'"),
        ({"precision": "int4"}, "unknown precision of the embedded server 'int4': did you mean 'int8'"),
        ({"threads": 0}, "knob threads = 0: expected 1 or more"),
        ({"batch": 1.5}, "knob batch = 1.5: expected a whole number"),
        ({"batch": "many"}, "knob batch = many: expected a number"),
        ({"memory_gb": 0}, "knob memory_gb = 0: expected more than zero"),
        ({"max_wait_ms": -1}, "knob max_wait_ms = -1: expected 0 or more"),
        ({"memory_gb": float("nan")}, "knob memory_gb = nan"),
    ],
)
def test_a_wrong_knob_is_one_clear_line(knobs, told):
    with pytest.raises(UserError) as error:
        Settings.of(knobs)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
