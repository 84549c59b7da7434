"""`mlcd logs`: what a launch on this machine has written, and what it will write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.ledgers import SPACE

from mlcd.cli.logs import _safe
from mlcd.clouds.launches import Launches
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Reserved, Started

Mlcd = Callable[..., Any]


@dataclass
class Busy(VirtualClock):
    """Whenever somebody waits, the next of these happens."""

    happens: Iterator[Callable[[], object]] = field(default_factory=lambda: iter(()))

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        next(self.happens)()


@pytest.fixture
def folder(home: Path) -> Path:
    """Of the one launch of run job-1, which was ordered and has written nothing yet."""
    with closing(Ledger(home / "ledger.db")) as ledger:
        started = Started(Job("job", 1.0, on="local"), SPACE, "local", Provenance.LIVE, "0")
        book = ledger.begin("job", VirtualClock(), started)
        order = Launch(f"{book.run}-1", SPACE.configurations[0], Purpose.PROBE, 1.0, None, 0)
        book.write(Reserved(order, "a try", 1.0, 1.0))
    return Launches(home / "launches").open(order)


def test_a_launch_that_has_written_nothing_yet_says_so(mlcd: Mlcd, folder: Path) -> None:
    said = mlcd("logs", "job-1")
    assert (said.code, said.out, said.err) == (0, "", "Nothing was written so far.\n")
    (folder / "0.log").write_text("good morning\n")
    said = mlcd("logs", "job-1")
    assert (said.code, said.out, said.err) == (0, "good morning\n", "")


def test_a_log_that_will_never_be_is_refused(mlcd: Mlcd, folder: Path) -> None:
    (folder / "ended").write_text("1.0")
    for asked in ((), ("-f",), ("--launch", 2)):
        assert "run 'job-1' has no such log" in mlcd("logs", "job-1", *asked).complaint


def test_who_follows_waits_for_the_first_line_and_reads_to_the_end(folder: Path) -> None:
    def say(words: str) -> None:
        with (folder / "0.log").open("a") as log:
            log.write(words)

    steps = [lambda: None, lambda: say(""), lambda: say("one\n"), lambda: say("two\n"), (folder / "ended").touch]
    assert "".join(Launches(folder.parent).read(folder, 0, Busy(happens=iter(steps)))) == "one\ntwo\n"


def test_who_follows_a_launch_that_ends_before_its_job_began_does_not_wait_for_ever(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(Launches(folder.parent).read(folder, 0, Busy(happens=iter([(folder / "ended").touch]))))


def test_lines_of_a_rank_and_lines_that_match_are_read_alone(mlcd: Mlcd, folder: Path) -> None:
    lines = [f"\x1b[36m(node{i % 2}, rank={i % 2}, pid=7)\x1b[0m step {i} loss 0.{i}\n" for i in range(4)]
    (folder / "0.log").write_text("".join(lines) + " 1%\r100%\n")
    assert mlcd("logs", "job-1", "1", "--rank", 1).out == "step 1 loss 0.1\nstep 3 loss 0.3\n"
    assert mlcd("logs", "job-1", "--grep", "loss 0.[23]").out == "step 2 loss 0.2\nstep 3 loss 0.3\n"
    assert mlcd("logs", "job-1", "--grep", "%").out == "100%\n"
    said = mlcd("logs", "job-1", "--rank", 0, "--grep", "step 3")
    assert (said.code, said.out, said.err) == (0, "", "No line of the newest launch matches.\n")
    told = [json.loads(line) for line in mlcd("logs", "job-1", "--rank", 0, "-o", "json").out.splitlines()]
    assert told == [{"rank": 0, "text": "step 0 loss 0.0"}, {"rank": 0, "text": "step 2 loss 0.2"}]
    (folder / "1.log").write_text("of a process of its own\n")
    assert mlcd("logs", "job-1", "--process", 1).out == "of a process of its own\n"
    assert "--grep" in mlcd("logs", "job-1", "--grep", "(").complaint


def test_a_rank_that_does_not_exist_is_refused_with_those_that_do(mlcd: Mlcd, folder: Path) -> None:
    no_rank_99 = "this launch of run 'job-1' has no rank 99; it has"
    (folder / "0.log").write_text("good morning\n")
    assert f"{no_rank_99}: 0" in mlcd("logs", "job-1", "--rank", 99).complaint
    (folder / "0.log").write_text("[rank1]: one\n[rank4]: four\n[rank5]: five\n")
    assert f"{no_rank_99}: 0, 1, 4, 5" in mlcd("logs", "job-1", "--rank", 99).complaint
    for process in (1, 2, 3):
        (folder / f"{process}.log").write_text("of a process of its own\n")
    assert f"{no_rank_99}: 0 to 3" in mlcd("logs", "job-1", "--rank", 99, "--grep", "own").complaint
    (folder / "ended").touch()
    assert f"{no_rank_99}: 0 to 3" in mlcd("logs", "job-1", "-f", "--process", 99).complaint


def test_a_job_controls_no_terminal(mlcd: Mlcd, folder: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x1b[2J\0 10%\r 20%\n\x1b[?1049h"
    (folder / "0.log").write_text(hostile)
    assert mlcd("logs", "job-1").out.encode() == hostile.encode(), "what is not read by a person is what was written"
    pieces = iter(["\x1b]0;ow", "ned\x07\x1b[31mred\x1b", "[0m\x1b[2J\0 10%\r 20%\n\x1b[?10", "49h"])
    assert "".join(_safe(pieces)) == "\x1b[31mred\x1b[0m␀ 10%\r 20%\n"
