"""Somebody with many runs: labels, filters that are in the address, pages, the archive, a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlcd.core.home import open_ledger
from mlcd.core.ledger import LabelUpdate
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text

pytestmark = pytest.mark.live

JOB = """
name: NAME
run: python train.py
mlcd:
  work: 2M
  parameters: 25M
  flops_per_sample: 12G
  budget: $40
  search: {nodes: 1..4, instances: [c5.xlarge, g4dn.xlarge], seed: 1}
"""
SCRIPT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def many(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One person's pages with 62 runs: two that decided, and sixty that somebody only began."""
    home: Path = tmp_path_factory.mktemp("many")
    ledger = open_ledger(home)
    for seed in (1, 2):
        start(
            job_from_text("train", JOB.replace("NAME", "decided").replace("seed: 1", f"seed: {seed}"), {}), ledger
        ).search()
    for i in range(60):
        run = start(job_from_text("train", JOB.replace("NAME", "begun"), {}), ledger).name
        if i % 2:
            ledger.label(run, LabelUpdate.of("odd", ["x"], note=SCRIPT))
    ledger.close()
    return serve(home, "ui", "--no-browser", "--no-demo", "--port", "0")


def test_filters_are_in_the_address_and_begin_with_the_first_page(page, many, expect):
    page.goto(f"{many.url}/?page=2")
    expect(page.get_by_text("2 of 2")).to_be_visible()
    expect(page.locator(".runs tbody tr")).to_have_count(12)
    page.get_by_label("Project", exact=True).select_option("odd")
    expect(page.locator(".runs tbody tr")).to_have_count(30)
    page.get_by_label("Filter by name, tag or note").fill("onerror")
    page.wait_for_url("**/?*project=odd*")
    assert "page" not in page.url
    page.reload()
    expect(page.locator(".runs tbody tr")).to_have_count(30)
    expect(page.locator(".labelled q").first).to_have_text(SCRIPT)  # as text
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".total")).to_contain_text("62 runs")


def test_selected_runs_are_tagged_together(page, many, expect):
    page.goto(f"{many.url}/?text=begun-5")
    page.get_by_label("Select begun-57").check()
    page.get_by_label("Select begun-59").check()
    page.get_by_label("Tags for the selected runs").fill("paper, final")
    page.get_by_role("button", name="Add tags").click()
    expect(page.locator(".labelled").filter(has_text="#paper#final")).to_have_count(2)
    expect(page.get_by_text("2 runs selected")).to_be_visible()  # and can be compared now


def test_selected_runs_are_compared_and_one_is_left_out(page, many, expect):
    page.goto(f"{many.url}/?text=decided")
    page.get_by_label("Select decided-1").check()
    expect(page.get_by_text("Select another run to compare.")).to_be_visible()
    page.get_by_label("Select decided-2").focus()
    page.keyboard.press("Space")
    page.get_by_role("link", name="Compare").click()
    page.wait_for_url("**/compare?runs=decided-1*decided-2")
    table = page.get_by_role("region", name="Side by side")
    expect(table.get_by_role("row", name="search.seed")).to_contain_text("1")
    rows = table.get_by_role("row")
    before = rows.count()
    page.get_by_label("Only what differs").check()
    assert 0 < rows.count() < before
    page.goto(f"{many.url}/compare?runs=decided-1,decided-2,begun-1")
    expect(page.get_by_text("Not decided yet, so their figures are not final: begun-1.")).to_be_visible()
    page.get_by_label("Compare without begun-1").first.click()
    page.wait_for_url("**/compare?runs=decided-1*decided-2")
    expect(page.get_by_text("Not decided yet")).to_have_count(0)


def test_labels_are_changed_on_the_page_and_an_archived_run_is_found_again(page, many, expect):
    page.goto(f"{many.url}/runs/decided-1")
    page.get_by_role("button", name="Add a project, tags, a note").click()
    page.get_by_label("Project").fill("two words")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("without spaces or commas")
    page.get_by_label("Project").fill("vision")
    page.get_by_label("Tags").fill("a b")
    page.get_by_label("Note").fill(SCRIPT)
    page.get_by_label("Archived").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".run-note")).to_have_text(SCRIPT)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("link", name="#b").click()
    expect(page.get_by_text("No matching run")).to_be_visible()
    page.get_by_label("Archive", exact=True).select_option("only")
    page.get_by_label("Select decided-1").check()
    page.get_by_role("button", name="Unarchive").click()
    expect(page.get_by_text("No matching run")).to_be_visible()
    page.goto(f"{many.url}/?project=vision")
    expect(page.get_by_role("link", name="decided-1")).to_be_visible()
