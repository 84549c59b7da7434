"""The page of a run shows what its jobs write: from the first line of each launch, whatever happens in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.scale_runs import JOB, SPACE

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Book, Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome

PLACE = SPACE.configurations[0]


def ordered(book: Book, home: Path, number: int) -> tuple[Launch, Path]:
    """A launch, and its folder, in which nothing is written yet."""
    launch = Launch(f"{book.run}-{number}", PLACE, Purpose.PROBE, 1_000.0, None, number, number)
    book.write(Reserved(launch, "a try", 2.0, 7_200.0))
    return launch, Launches(home / "launches").open(launch)


@pytest.mark.night  # at each change: test_live_in_browser.py, and service/web/test_job_logs.py
def test_a_log_is_followed_from_its_first_line_through_an_outage_and_into_the_next_launch(
    page: Any, serve: Any, expect: Any, tmp_path: Path
) -> None:
    ledger = open_ledger(tmp_path)
    book = ledger.begin("digits", VirtualClock(), Started(JOB, SPACE, "local", Provenance.LIVE, "0"))
    log = page.get_by_role("log")
    with ledger.hold(book.run):
        first, folder = ordered(book, tmp_path, 1)
        ui = serve(tmp_path, "ui", "--no-demo", "--no-browser", "--port", "0")
        page.goto(f"{ui.url}/runs/{book.run}")
        page.locator("summary", has_text="Output of the job").click()
        expect(log).to_have_text("No output yet.")
        (folder / "0.log").write_text("good morning\n")
        expect(log).to_have_text("good morning")
        with page.expect_event("requestfailed", lambda request: "/logs?" in request.url):
            page.context.set_offline(True)
        page.context.set_offline(False)
        (folder / "0.log").write_text("good morning\ngood night\n")
        expect(log).to_contain_text("good night")
        (folder / "ended").write_text("1.0")
        book.write(Settled(first, Measurement(PLACE, Outcome.OK, 3.0, 0.1, 100.0)))
        with page.expect_response(lambda answer: "/logs?" in answer.url and answer.json()["done"]):
            pass  # the page knows that the first launch is over
        _, folder = ordered(book, tmp_path, 2)
        (folder / "0.log").write_text("good morning again, and much more than the first launch wrote\n")
        expect(log).to_contain_text("— Launch 2 —\ngood morning again")
        expect(log).to_contain_text("good night")
    ledger.close()
