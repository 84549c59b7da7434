"""What a live job does between two entries: seen from another terminal and over a server, as long as it runs."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from time import monotonic

import pytest
from mlcd_fixtures.live_jobs import ONE_NODE, SAVING
from mlcd_fixtures.scale_runs import JOB, SPACE
from rich.console import Console
from served import Service, one_person

from mlcd.cli import main
from mlcd.cli.drive import RunDisplay
from mlcd.cli.messages import EntryPrinter
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Started, Stopped
from mlcd.core.measurement import Sample
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job
from mlcd.reports.launch_progress import Headway, from_json, to_json
from mlcd.service.remote.ledger import RemoteLedger, watch
from mlcd.service.remote.server import Server

pytestmark = pytest.mark.live

LIVE = Started(JOB, SPACE, "local", Provenance.LIVE, "0")
PATIENCE_S = 300.0


@pytest.fixture
def service(home: Path) -> Iterator[Service]:
    with one_person(home) as found:
        yield found


@pytest.fixture
def hears(capsys: pytest.CaptureFixture[str]) -> Callable[[str], bool]:
    """Waits until this was said on stderr, by whatever thread."""
    said = ""

    def wait(words: str) -> bool:
        nonlocal said
        until_s = monotonic() + PATIENCE_S
        while words not in said and monotonic() < until_s:
            select.select([], [], [], 0.01)
            said += capsys.readouterr().err
        return words in said

    return wait


def standing(share: float) -> str:
    words = f"2 x node  {share:.0%} done"
    return to_json([Headway("digits-1-1", Purpose.RUN, "2 x node", datetime.now(UTC), 9.0, 0.01, words, share)])


def exit_code(*arguments: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code


def test_an_entry_is_written_above_the_line_that_changes(home: Path) -> None:
    ledger, written = open_ledger(), StringIO()
    book = ledger.begin("digits", VirtualClock(), LIVE)
    printer = EntryPrinter(True, progress=Console(file=written, force_terminal=True, highlight=False))
    with closing(printer.progress_line) as line:
        line.show(from_json(standing(0.31))[0])
        printer(*ledger.lines(book.run))
    assert "31% done" in written.getvalue()
    assert book.run in written.getvalue()  # by the console that has the line, and takes it away first


@pytest.mark.parametrize("where", ["here", "there"])
def test_who_watches_a_run_from_elsewhere_is_shown_how_far_its_job_is(
    where: str, service: Service, hears: Callable[[str], bool]
) -> None:
    ledger = service.ledger
    book = ledger.begin("digits", VirtualClock(), LIVE)
    options = () if where == "here" else ("--server", service.url)
    with ThreadPoolExecutor(1) as pool:
        with ledger.hold(book.run):
            ledger.set_progress(book.run, standing(0.31))
            ended = pool.submit(exit_code, *options, "watch", book.run)
            assert hears("2 x node  31% done")
            ledger.set_progress(book.run, standing(0.62))
            assert hears("2 x node  62% done")
            book.write(Stopped("that is enough"))
        assert hears("run 'digits-1' was stopped, that is enough; everything measured is kept")
        assert ended.result(PATIENCE_S) == ExitCode.INTERRUPTED


def test_a_job_that_a_worker_runs_is_told_over_the_stream_while_it_runs_and_then_no_more(
    service: Service, tmp_path: Path
) -> None:
    (tmp_path / "nodes.yaml").write_text(ONE_NODE)
    (tmp_path / "train.py").write_text(SAVING.replace("TOTAL", "100000"))
    path, on = tmp_path / "job.yaml", f"local:{tmp_path / 'nodes.yaml'}"
    path.write_text(f"name: told{os.getpid()}\nrun: python3 train.py\nmlcd: {{work: 1e5, on: '{on}', deadline: 1h}}\n")
    run = start(load_job(path), service.ledger).name  # here: a request names no file of nodes
    server, heard = Server(service.url), []
    server.post(f"/runs/{run}/resume")
    kinds = [
        line.entry.kind for line in watch(RemoteLedger(server), run, lambda rests: rests, on_progress=heard.append)
    ]
    assert kinds[:3] == ["started", "reserved", "settled"]
    first, *_, last = [json.loads(each) for each in heard]
    assert last == []
    assert (first[0]["label"], first[0]["purpose"], first[0]["where"]) == (f"{run}-1", "probe", "1 x a")
    assert service.ledger.progress([run]) == {}
    assert server.get(f"/runs/{run}")["progress"] == []
    server.close()


def test_a_live_run_of_a_terminal_shows_a_line_there_and_is_noted_for_others_until_it_ends(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = service.ledger
    run = ledger.begin("digits", VirtualClock(), LIVE).run
    display = RunDisplay(ledger, "table")
    launch = Launch(f"{run}-1", SPACE.configurations[0], Purpose.RUN, 100.0, None, 1)
    with ledger.hold(run), display.showing(run):
        display.report(JOB, launch, Sample(2.0, 30.0))
        until_s = monotonic() + PATIENCE_S
        while not (noted := ledger.progress([run])) and monotonic() < until_s:
            select.select([], [], [], 0.01)
        (told,) = json.loads(noted[run])
        assert (told["label"], told["share"]) == (launch.label, 0.3)
        assert told["words"] in capsys.readouterr().err
    assert ledger.progress([run]) == {}
