"""What a job writes, asked for while it runs: also before it has written anything."""

from __future__ import annotations

import json
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
from mlcd.service.workers.log_copies import USAGE

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

    def read(self, what: str) -> Any:
        """What one of the routes below `logs`, or `usage`, tells."""
        self.stage.look()
        told = self.stage.ask("GET", f"{API}/runs/{self.book.run}/{what}")
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


def test_a_window_of_lines_is_read_on_from_its_end_and_back_from_its_start(stage: Stage) -> None:
    run = begun(stage)
    folder = run.order(1)
    assert run.read("logs/lines") == {"launch": 1, "lines": [], "start": 0, "next": 0, "size": 0, "done": False}
    body = "".join(f"line {i}\n" for i in range(5_000)) + "\x1b[31m 1%\r 2%"
    (folder / "0.log").write_text(body)
    last = run.read("logs/lines")
    assert (len(last["lines"]), last["lines"][-1]["text"], last["size"]) == (1_000, " 2%", len(body))
    assert body[last["next"] :] == "\x1b[31m 1%\r 2%"
    before = run.read(f"logs/lines?before={last['start']}")
    assert before["next"] == last["start"]
    assert before["lines"][-1]["text"] == "line 4000"
    assert run.read("logs/lines?before=0")["lines"] == []
    (folder / "0.log").write_text(f"{body}\r\nthe end\n")
    (folder / "ended").write_text("1.0")
    more = run.read(f"logs/lines?after={last['next']}")
    assert ([line["text"] for line in more["lines"]], more["done"]) == ([" 2%", "the end"], True)


def test_a_log_is_searched_and_its_first_error_found_in_the_rank_that_is_looked_at(stage: Stage) -> None:
    run = begun(stage)
    folder = run.order(1)
    lines = [f"(node{i % 2}, rank={i % 2}, pid=7) step {i}\n" for i in range(10)]
    lines += ["(node1, rank=1, pid=7) ValueError: shapes differ\n", "@mlcd t=1.0 samples=10 saved=0\n"]
    (folder / "0.log").write_text("".join(lines))
    (folder / "1.log").write_text("quiet\n")
    assert run.read("logs/parts") == {"launches": [1], "launch": 1, "processes": [0, 1], "ranks": [0, 1]}
    assert run.read("logs/find?text=STEP%203") == {
        "launch": 1, "at": [sum(map(len, lines[:3]))], "next": sum(map(len, lines)), "done": True,
    }  # fmt: skip
    assert run.read("logs/find?text=step%203&rank=0")["at"] == []
    assert run.read("logs/find")["at"] == [sum(map(len, lines[:10]))]
    assert run.read("logs/find?process=1")["at"] == []
    assert [line["text"] for line in run.read("logs/lines?rank=1")["lines"]][-1] == "ValueError: shapes differ"
    assert run.read("logs/lines?reports=true")["lines"][-1]["text"].startswith("@mlcd t=1.0")


def test_a_whole_log_comes_as_a_file_or_a_part_of_it_byte_for_byte(stage: Stage) -> None:
    run = begun(stage)
    body = bytes(range(256)) * 3_000
    (run.order(1) / "0.log").write_bytes(body)
    run.stage.look()
    path = f"{API}/runs/{run.book.run}/logs/file"
    told = stage.ask("GET", path)
    assert told.body == body
    assert told.headers["content-disposition"] == f'attachment; filename="{run.book.run}-1-0.log"'
    assert told.headers["content-type"] == "text/plain; charset=utf-8"
    assert told.headers["x-content-type-options"] == "nosniff"
    part = stage.ask("GET", path, headers={"range": "bytes=700000-"})
    assert (part.status, part.body) == (206, body[700_000:])
    assert part.headers["content-range"] == f"bytes 700000-{len(body) - 1}/{len(body)}"
    assert stage.ask("GET", path, headers={"range": "bytes=2-4"}).body == body[2:5]
    assert stage.ask("GET", path, headers={"range": f"bytes={len(body)}-"}).status == 416
    assert stage.ask("GET", path, headers={"range": "bytes=-3,7-"}).body == body, "what is not understood is ignored"


def test_what_machines_used_is_told_where_it_was_measured_and_from_a_workers_copy_too(stage: Stage) -> None:
    run = begun(stage)
    first = run.reserve(1)
    folder = run.launches.open(first)
    (folder / "0.log").write_text("hi\n")
    nothing = run.read("usage")
    assert (nothing["machines"], nothing["points"], nothing["sentence"], nothing["began_at"]) == ([], [], "", None)
    head = {"started_at": 1e9, "machines": [{"name": "node 0", "cores": 2, "memory_gib": 4}], "gpus": []}
    lines = [
        {"t": t, "cpu": [1.0], "memory": [1.0], "peak": [3.0], "gpu": [], "gpu_memory": [], "logs": {"0": t}}
        for t in range(1, 2_001)
    ]
    record = "".join(json.dumps(each) + "\n" for each in (head, *lines)).encode()
    (folder / "usage.jsonl").write_bytes(record)
    told = run.read("usage")
    assert told["began_at"] == "2001-09-09T01:46:40+00:00"
    assert (told["cpu_share"], told["memory_peak"]["share"], len(told["points"])) == (0.5, 0.75, 400)
    assert told["sentence"] == "CPU 1 of 2 cores busy · memory at most 3 of 4 GiB (75%)"
    pieces = LogPieces(stage.state.database)
    run.settle(first)
    second = run.reserve(2)
    for process, body in ((0, b"hi\n"), (USAGE, record)):
        pieces.append(second.label, process, 0, body)
    assert run.read("usage") == {**told, "launch": 2}
    assert run.read("logs/parts") == {"launches": [1, 2], "launch": 2, "processes": [0], "ranks": []}
    assert run.read("logs/lines")["lines"] == [{"at": 0, "text": "hi", "rank": None, "cut": 0}]
    stage.look()
    assert stage.ask("GET", f"{API}/runs/{run.book.run}/logs/file").body == b"hi\n"
