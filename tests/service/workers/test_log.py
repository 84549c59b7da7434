"""What a worker writes to its log, whatever jobs and clouds say."""

from __future__ import annotations

import logging

from mlcd.service.workers.log import OneLine


def test_no_message_can_forge_another_or_command_a_terminal() -> None:
    said = "no such type x\nmlcd: all is paid\x1b[2J\u202e"
    record = logging.LogRecord("mlcd.service.workers", logging.ERROR, "", 0, "run '%s': %s", ("a-1", said), None)
    line = OneLine("mlcd: %(message)s").format(record)
    assert line == r"mlcd: run 'a-1': no such type x\nmlcd: all is paid\x1b[2J\u202e"


def test_the_stack_of_a_bug_stays_readable() -> None:
    try:
        raise ZeroDivisionError("of nothing")
    except ZeroDivisionError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("mlcd.service.workers", logging.ERROR, "", 0, "a bug in MLCD", (), info)
    first, *stack = OneLine("mlcd: %(message)s").format(record).splitlines()
    assert first == "mlcd: a bug in MLCD"
    assert stack[-1] == "ZeroDivisionError: of nothing"
