"""The page of a run whose job is under way on real machines: a bar that moves, and goes when the job is done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mlcd_fixtures.scale_runs import JOB, SPACE

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.home import open_ledger
from mlcd.core.ledger import Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.reports.launch_progress import Headway, to_json

PLACE = SPACE.configurations[0]
LAUNCH = Launch("digits-1-1", PLACE, Purpose.PROBE, 1_000.0, None, 1)


def standing(share: float | None) -> str:
    at, left_s = datetime.now(UTC), None if share is None else 3_600.0
    return to_json([Headway(LAUNCH.label, Purpose.RUN, str(PLACE), at, 60.0, 0.5, "", share, 480.0, left_s=left_s)])


@pytest.mark.night  # at each change: test_live_in_browser.py follows a job, too
def test_the_page_shows_how_far_a_job_is_while_it_runs(page: Any, serve: Any, tmp_path: Any) -> None:
    from playwright.sync_api import expect

    ledger = open_ledger(tmp_path)
    book = ledger.begin("digits", VirtualClock(), Started(JOB, SPACE, "local", Provenance.LIVE, "0"))
    bar = page.get_by_role("progressbar", name=f"Progress of {PLACE}")
    with ledger.hold(book.run):
        book.write(Reserved(LAUNCH, "the only one", 2.0, 7_200.0))
        ledger.set_progress(book.run, standing(0.25))
        ui = serve(tmp_path, "ui", "--no-demo", "--no-browser", "--port", "0")
        page.goto(f"{ui.url}/runs/{book.run}")
        expect(bar).to_have_attribute("aria-valuenow", "25")
        under_way = page.get_by_label("Running now")
        for words in ("480 samples/s", "(in 1 h)", "$0.50 of at most $2.00"):
            expect(under_way).to_contain_text(words)
        ledger.set_progress(book.run, standing(0.6))
        expect(bar).to_have_attribute("aria-valuetext", "60 % done, about 1 h left")
        ledger.set_progress(book.run, standing(None))
        expect(bar).not_to_have_attribute("aria-valuenow", "60")
        ledger.set_progress(book.run, None)
        book.write(Settled(LAUNCH, Measurement(PLACE, Outcome.OK, 3.0, 0.1, 100.0)))
        expect(bar).to_have_count(0)
    ledger.close()
