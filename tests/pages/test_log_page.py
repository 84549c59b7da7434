"""The page of a run shows what its jobs write: from the first line of each launch, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.scale_runs import JOB, SPACE
from test_accessible import AXE, RULES, RUN_AXE

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
        with page.expect_event("requestfailed", lambda request: "/logs/lines?" in request.url):
            page.context.set_offline(True)
        page.context.set_offline(False)
        (folder / "0.log").write_text("good morning\ngood night\n")
        expect(log).to_contain_text("good night")
        (folder / "ended").write_text("1.0")
        book.write(Settled(first, Measurement(PLACE, Outcome.OK, 3.0, 0.1, 100.0)))
        with page.expect_response(lambda answer: "/logs/lines?" in answer.url and answer.json()["done"]):
            pass  # the page knows that the first launch is over
        _, folder = ordered(book, tmp_path, 2)
        (folder / "0.log").write_text("good morning again, and much more than the first launch wrote\n")
        expect(log).to_have_text("good morning again, and much more than the first launch wrote")
        page.get_by_label("Launch", exact=True).select_option("1")
        expect(log).to_contain_text("good night")
    ledger.close()


RANKED = "\x1b[36m(node{rank}, rank={rank}, pid=7)\x1b[0m step {step} \x1b[32mloss 0.5\x1b[0m\n"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">\0\x1b[2J\x1b]0;owned\x07\n 10%\r 20%\n"
MEASURED = {
    "machines": [{"name": "node 0", "cores": 2, "memory_gib": 4}],
    "gpus": [{"name": "H200", "memory_gib": 140}],
}


@pytest.mark.live
def test_a_large_log_is_searched_split_by_rank_and_downloaded_beside_what_the_machine_did(
    page: Any, serve: Any, expect: Any, tmp_path: Path
) -> None:
    ledger = open_ledger(tmp_path)
    book = ledger.begin("digits", VirtualClock(), Started(JOB, SPACE, "local", Provenance.LIVE, "0"))
    launch, folder = ordered(book, tmp_path, 1)
    lines = [RANKED.format(rank=i % 2, step=i) for i in range(20_000)]
    lines[12_345] += "(node1, rank=1, pid=7) \x1b[31mValueError: shapes\x1b[0m differ\n"
    body = "".join(lines) + HOSTILE
    (folder / "0.log").write_bytes(body.encode())
    used = {"cpu": [1.5], "memory": [1], "peak": [3.5], "gpu": [40], "gpu_memory": [70]}
    record = [{"started_at": 1e9, **MEASURED}, *({"t": t, **used, "logs": {"0": 50_000 * t}} for t in range(1, 40))]
    (folder / "usage.jsonl").write_text("".join(json.dumps(each) + "\n" for each in record))
    (folder / "ended").write_text("1.0")
    book.write(Settled(launch, Measurement(PLACE, Outcome.OK, 3.0, 0.1, 100.0)))
    ui = serve(tmp_path, "ui", "--no-demo", "--no-browser", "--port", "0")
    if AXE.exists():
        page.add_init_script(path=AXE)
    page.goto(f"{ui.url}/runs/{book.run}")
    page.locator("summary", has_text="Output of the job").click()
    log, here = page.get_by_role("log"), page.locator(".log-line.here")
    expect(log).to_contain_text("step 19999 loss 0.5")
    expect(log).to_contain_text("<img src=x")
    expect(log).to_contain_text(" 20%")
    expect(page).not_to_have_title("owned")
    expect(log.locator(".ink2").last).to_have_text("loss 0.5")
    assert log.locator(".log-line").count() == 1_000, "of a log of any size, a window"
    log.evaluate("each => each.scrollTo(0, 0)")
    expect(log).to_contain_text("step 18500 ")

    page.get_by_role("button", name="First error").click()
    expect(here).to_contain_text("ValueError: shapes differ")
    expect(here).to_be_in_viewport()
    page.locator("body").press("s")
    page.keyboard.type("STEP 777")
    expect(page.locator(".found")).to_have_text("11 lines")
    page.keyboard.press("Enter")
    expect(here).to_contain_text("step 777 ")
    expect(here.locator("mark")).to_have_text("step 777")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".found")).to_have_text("11 of 11")
    expect(here).to_contain_text("step 7779 ")

    page.get_by_label("Rank", exact=True).select_option("1")
    expect(page.locator(".found")).to_have_text("6 lines")
    expect(log).not_to_contain_text("step 19998 ")
    expect(log).to_contain_text("step 19999 ")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == f"{book.run}-1-0.log"
    assert Path(download.value.path()).read_bytes() == body.encode()
    told = "GPU 40 % busy · CPU 1.5 of 2 cores busy · memory at most 3.5 of 4 GiB (88%)"
    expect(page.get_by_role("region", name="What the machines did")).to_contain_text(told)
    for title in ("CPU", "Memory", "GPU busy", "GPU memory"):
        expect(page.get_by_role("figure", name=title, exact=True).get_by_role("img")).to_be_visible()
    ledger.close()
    if AXE.exists():
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert [each["id"] for each in page.evaluate(RUN_AXE, RULES)] == []
