"""`mlcd logs`: what a launch on this machine has written, and what it will write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.ledgers import SPACE

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
    (folder / "0.log").write_text("good morning\n")
    assert "run 'job-1' has no such log" in mlcd("logs", "job-1", "--process", 7).complaint


def test_who_follows_waits_for_the_first_line_and_reads_to_the_end(folder: Path) -> None:
    def say(words: str) -> None:
        with (folder / "0.log").open("a") as log:
            log.write(words)

    steps = [lambda: None, lambda: say(""), lambda: say("one\n"), lambda: say("two\n"), (folder / "ended").touch]
    assert "".join(Launches(folder.parent).read(folder, 0, Busy(happens=iter(steps)))) == "one\ntwo\n"


def test_who_follows_a_launch_that_ends_before_its_job_began_does_not_wait_for_ever(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(Launches(folder.parent).read(folder, 0, Busy(happens=iter([(folder / "ended").touch]))))
