"""What a job writes, asked for while it runs: also before it has written anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.ledgers import SPACE
from stage import API, Stage, staged

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.database.files import LogPieces
from mlcd.core.job import Job
from mlcd.core.ledger import Book, Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome

PLACE = SPACE.configurations[0]


@dataclass
class Driven:
    """A run that this test drives, on nodes of this machine or of another one."""

    stage: Stage
    book: Book

    @property
    def launches(self) -> Launches:
        return Launches(self.stage.state.settings.home / "launches")

    def reserve(self, number: int) -> Launch:
        launch = Launch(f"{self.book.run}-{number}", PLACE, Purpose.PROBE, 1.0, None, 0, number)
        self.book.write(Reserved(launch, "a try", 1.0, 1.0))
        return launch

    def order(self, number: int) -> Path:
        """The folder of a launch of which nothing has begun yet."""
        return self.launches.open(self.reserve(number))

    def settle(self, launch: Launch) -> None:
        self.book.write(Settled(launch, Measurement(PLACE, Outcome.FAILED, 1.0, 0.5)))

    def asked(self, query: str = "") -> Any:
        self.stage.look()
        return self.stage.ask("GET", f"{API}/runs/{self.book.run}/logs{query}")

    def told(self, query: str = "") -> Any:
        told = self.asked(query)
        assert told.status == 200, told.body
        return told.json()

    def has_no_log(self, query: str = "") -> bool:
        told = self.asked(query)
        return told.status == 404 and "has no such log" in told.error


def nothing_yet(launch: int) -> dict[str, Any]:
    return {"launch": launch, "text": "", "next": 0, "done": False}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home", mode="ui") as stage:
        yield stage


def begun(stage: Stage, provenance: Provenance = Provenance.LIVE) -> Driven:
    started = Started(Job("live", 1.0, on="local"), SPACE, "local", provenance, "0")
    return Driven(stage, stage.state.ledger.begin("live", VirtualClock(), started))


def test_a_launch_that_has_written_nothing_yet_has_an_empty_log_which_is_not_done(stage: Stage) -> None:
    run = begun(stage)
    folder = run.order(1)
    assert run.told() == run.told("?launch=1") == nothing_yet(1)
    (folder / "0.log").write_text("good morning\n")
    assert run.told() == {"launch": 1, "text": "good morning\n", "next": 13, "done": False}
    (folder / "ended").write_text("1.0")
    assert run.told("?after=13") == {"launch": 1, "text": "", "next": 13, "done": True}


def test_a_process_that_a_launch_does_not_have_is_none_that_will_write(stage: Stage) -> None:
    run = begun(stage)
    (run.order(1) / "0.log").write_text("good morning\n")
    assert run.has_no_log("?process=7")
    assert run.has_no_log("?launch=9")


def test_a_launch_that_ended_before_its_job_began_has_no_log(stage: Stage) -> None:
    run = begun(stage)
    (run.order(1) / "ended").write_text("1.0")
    assert run.has_no_log()


def test_a_launch_on_another_machine_of_which_nothing_was_copied_yet_has_an_empty_log_too(stage: Stage) -> None:
    run, pieces = begun(stage), LogPieces(stage.state.database)
    first = run.reserve(1)
    assert run.has_no_log(), "nobody drives it, so nobody will write"
    with stage.state.ledger.hold(run.book.run):
        assert run.told() == nothing_yet(1)
        pieces.append(first.label, 0, 0, b"first")
        assert run.told()["text"] == "first"
        assert run.has_no_log("?process=7")
        run.settle(first)
        second = run.reserve(2)
        assert run.told() == nothing_yet(2)
        run.settle(second)
        assert run.told()["launch"] == 1


def test_of_a_launch_on_no_real_machine_no_log_is_awaited(stage: Stage) -> None:
    run = begun(stage, Provenance.SIMULATED)
    run.reserve(1)
    with stage.state.ledger.hold(run.book.run):
        assert run.has_no_log()
