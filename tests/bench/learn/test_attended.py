"""A process that is watched: how it ends is an answer."""

from __future__ import annotations

import os
import signal
import sys
import threading

from mlcd_bench.learn.attended import Tell, attended

SILENT_S = 300.0


def says(words: list[str], tell: Tell) -> None:
    for word in words:
        tell(word)


def dies(number: int, tell: Tell) -> None:
    tell("before")
    os.kill(os.getpid(), number)


def leaves(status: int, tell: Tell) -> None:
    tell("before")
    sys.exit(status)


def hangs(tell: Tell) -> None:
    tell("before")
    threading.Event().wait()


def test_what_it_said_last_and_that_it_ended_well():
    assert attended(says, ["one", "two"], silent_s=SILENT_S, start="spawn") == ("two", 0)


def test_a_process_without_reports_may_succeed():
    assert attended(says, [], silent_s=SILENT_S, start="spawn") == (None, 0)


def test_a_crash_is_reported_with_its_location():
    told = attended(dies, int(signal.SIGKILL), silent_s=SILENT_S, start="spawn")
    assert told == ("before", -signal.SIGKILL)


def test_an_exit_status_is_reported():
    assert attended(leaves, 3, silent_s=SILENT_S, start="spawn") == ("before", 3)


def test_a_hung_process_is_killed():
    last, ended = attended(hangs, silent_s=1.0, start="spawn")
    assert last in ("before", None)  # a machine under load may not have begun yet
    assert ended == "no sign of life"
