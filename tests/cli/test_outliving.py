"""What is written to a terminal that is gone goes to the log: it does not end who drives a run."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest
from rich.console import Console

from mlcd.cli.signals import HangupSafeStream


def test_a_write_to_a_terminal_that_is_gone_goes_where_the_driver_left_to(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    with (tmp_path / "log").open("wb") as log, os.fdopen(its, "w", buffering=1) as terminal:
        stream = HangupSafeStream(terminal, lambda: os.dup2(log.fileno(), its))
        print("before", file=stream)
        assert os.read(ours, 100) == b"before\r\n"
        os.close(ours)
        Console(file=stream).print("after")  # type: ignore[arg-type]
        print("and more", file=stream)
    assert (tmp_path / "log").read_text() == "after\nand more\n"


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w", buffering=1) as full:
        with pytest.raises(OSError, match="No space left"):
            print("lost", file=HangupSafeStream(full, lambda: pytest.fail("it is no terminal")))
        with pytest.raises(OSError, match="No space left"):
            full.close()  # its buffer is not empty
