"""Everybody can use the pages: axe finds nothing wrong with any of them, in the light, and in the dark on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.api import TRAIN, fill
from mlcd_fixtures.examples import at_night_except

from mlcd.core.home import open_ledger
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
AXE = ROOT / "pages" / "node_modules" / "axe-core" / "axe.min.js"
EXAMPLES = ROOT / "mlcd" / "service" / "web" / "examples"
EXAMPLED = ("scale", "tune", "functions")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']}).then(found => found.violations)"
RUNS = ("demo-1", "elastic-1", "net-a-1", "tuned-1", "trained-1", "demo-4")
"""One of each kind, and one that was refused."""
WIDE, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll('tbody th')]
    .filter(each => each.scrollWidth > each.clientWidth + 1)
    .map(each => `${each.tagName} ${each.textContent.trim().slice(0, 80)}`)"""


@pytest.fixture(scope="module")
def rich(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One person's pages, with a run of every kind."""
    home = tmp_path_factory.mktemp("rich")
    ledger = open_ledger(home)
    fill(ledger, home / "recordings", {kind: (EXAMPLES / f"{kind}.yaml").read_text() for kind in EXAMPLED})
    start(replace(job_from_text("train", TRAIN, {}), name=60 * "m"), ledger)
    ledger.close()
    return serve(home, "ui", "--no-browser", "--no-demo", "--port", "0")


@pytest.fixture(scope="module")
def looking(browser: Any) -> Iterator[Any]:
    if not AXE.exists():
        pytest.skip("axe-core is not here: npm ci in pages/")
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(120_000)
    context.add_init_script(path=AXE)
    yield context.new_page()
    context.close()


def check(page: Any) -> None:
    """All rules in the light; in the dark only the colours can be wrong. Nothing is wider than its place."""
    page.emulate_media(color_scheme="light")
    page.evaluate("scrollTo(0, 0)")  # else the bar, which stays, covers what it is over
    wrong = page.evaluate(RUN_AXE, RULES)
    too_wide = page.evaluate(TOO_WIDE)
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    wrong += page.evaluate(RUN_AXE, {"type": "rule", "values": ["color-contrast"]})
    too_wide += page.evaluate(TOO_WIDE)
    page.set_viewport_size(WIDE)
    found = [f"{each['id']}: {node['html'][:300]}" for each in wrong for node in each["nodes"]]
    assert "\n".join([*(f"too wide: {words}" for words in too_wide), *found]) == ""


def opened(page: Any, url: str, ready: str) -> None:
    page.goto(url)
    page.locator(ready).first.wait_for()


@pytest.mark.parametrize("run", at_night_except(("demo-1",), RUNS))
def test_a_run_of_every_kind(looking, rich, run):
    opened(looking, f"{rich.url}/runs/{run}", ".answer")
    for folded in looking.locator(".opened > summary, .certificate summary").all():
        folded.click()
    check(looking)


def test_what_is_shown_before_real_money(looking, rich):
    opened(looking, f"{rich.url}/submit", "#job")
    looking.locator("#job").fill(TRAIN.replace("run: ", "resources: {infra: aws}\nrun: "))
    looking.get_by_label("Where", exact=True).select_option("skypilot")
    looking.get_by_role("button", name="Yes, spend").wait_for()
    check(looking)


def test_what_is_asked_before_a_search_goes_on(looking, rich):
    opened(looking, f"{rich.url}/runs/demo-1/explore?budget=70", ".go-on button")
    check(looking)
    looking.locator(".go-on button").first.click()
    looking.get_by_role("dialog").wait_for()
    check(looking)


@pytest.mark.night  # at each change: the page of a run, which is the same
@pytest.mark.parametrize("run", [run for run in RUNS if run != "demo-4"])
def test_the_report_of_every_kind(looking, rich, run):
    opened(looking, f"{rich.url}/api/v1/runs/{run}/report", ".answer")
    for folded in looking.locator(".opened > summary").all():
        folded.click()
    check(looking)


@pytest.mark.night
@pytest.mark.parametrize("run", ["demo-1", "elastic-1", "net-a-1", "tuned-1"])
def test_what_if_of_every_kind(looking, rich, run):
    opened(looking, f"{rich.url}/runs/{run}/explore", ".verdict-line")
    check(looking)


@pytest.mark.parametrize(
    ("path", "ready"),
    [
        ("/", ".runs tbody tr"),
        ("/?text=nothing-has-this-name", ".empty"),
        ("/?project=gone&tag=gone&since=2026-01-01&archived=all&page=2", ".filters"),
        ("/compare?runs=demo-1,demo-2,elastic-1,tuned-1", ".side-by-side"),
        ("/compare", ".empty"),
        ("/submit", "#job"),
        ("/offers?gpu=A100", "tbody tr"),
        ("/models", ".base"),
        ("/nowhere", "h1"),
        ("/runs/nobody-1", ".notice"),
    ],
)
def test_every_other_page(looking, rich, path, ready):
    opened(looking, f"{rich.url}{path}", ready)
    check(looking)


def test_selected_runs_a_comparison_unfolded_and_labels_being_changed(looking, rich):
    opened(looking, f"{rich.url}/", ".named input")
    for box in looking.locator(".named input").all()[:2]:
        box.check()
    looking.get_by_role("group", name="Selected runs").wait_for()
    check(looking)
    opened(looking, f"{rich.url}/compare?runs=demo-1,demo-2,elastic-1", ".side-by-side")
    for folded in looking.locator(".opened > summary").all():
        folded.click()
    check(looking)
    opened(looking, f"{rich.url}/runs/demo-1", ".labels button")
    looking.get_by_role("button", name="Add a project, tags, a note").click()
    looking.get_by_role("dialog", name="Labels of demo-1").wait_for()
    check(looking)


def test_what_is_wrong_is_found(looking, rich):
    opened(looking, f"{rich.url}/submit", "#job")
    looking.evaluate("document.body.style.setProperty('--soft', 'light-dark(#57606d, #333)')")
    with pytest.raises(AssertionError, match="color-contrast"):
        check(looking)
    looking.evaluate("document.querySelector('nav').outerHTML = '<img width=20 src=/icon.svg>'")
    with pytest.raises(AssertionError, match="image-alt"):
        check(looking)
    looking.evaluate("document.querySelector('img').width = 2000")
    with pytest.raises(AssertionError, match="too wide: HTML"):
        check(looking)


def test_charts_as_tables_open_dialogs_and_a_mistake(looking, rich):
    opened(looking, f"{rich.url}/runs/demo-1", ".chart .plot")
    while (charts := looking.get_by_role("button", name="Show as table")).count():
        charts.first.click()
    looking.locator(".expandable .open").first.click()
    check(looking)
    looking.goto(f"{rich.url}/runs/demo-2")
    looking.get_by_role("button", name="Resume …").click()
    looking.get_by_role("dialog").wait_for()
    check(looking)
    opened(looking, f"{rich.url}/submit", "#job")
    looking.keyboard.press("?")
    looking.get_by_role("dialog", name="Keys").wait_for()
    check(looking)
    looking.keyboard.press("Escape")
    looking.get_by_role("button", name="train", exact=True).click()
    looking.get_by_role("button", name="Check").click()
    looking.get_by_role("button", name="Start").wait_for()
    check(looking)
    looking.locator("#job").fill("name: x\nmlcd: {work: many}\n")
    looking.get_by_role("button", name="Check").click()
    looking.locator("#job-mistakes ol").wait_for()
    check(looking)
    looking.locator("#job").press("Control+f")
    looking.get_by_role("textbox", name="Find").wait_for()
    check(looking)
    looking.keyboard.press("Escape")
    looking.locator("#job").press("Control+End")
    looking.keyboard.type("r")
    looking.locator(".cm-completionInfo").wait_for()
    check(looking)


@pytest.mark.night  # at each change test_in_browser.py signs in, and changes the team
def test_signing_in_and_the_team(looking, serve, postgres_url, tmp_path):
    served = serve(tmp_path / "home", "service", "--port", "0", "--workers", "0", MLCD_DATABASE_URL=postgres_url)
    opened(looking, f"{served.url}/team", ".sign-in form")
    check(looking)
    looking.get_by_label("Token").fill(re.findall(r"mlcd_[\w-]{43}", "".join(served.first_words))[0])
    looking.get_by_role("button", name="Sign in").click()
    looking.locator("td .row-acts").first.wait_for()
    looking.get_by_role("button", name="Change: ").first.click()
    check(looking)
    for path, ready in (("/workers", ".section"), ("/news", "form.member"), ("/tokens", "form.member")):
        opened(looking, f"{served.url}{path}", ready)
        check(looking)
    looking.get_by_label("Name", exact=True).fill("ci")
    looking.get_by_role("button", name="Make").click()
    looking.locator(".row-acts").wait_for()
    check(looking)
