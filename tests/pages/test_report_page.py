"""The report in a real browser: opened from disk it draws every chart, asks for nothing, can do nothing, and prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.api import KINDS, STOPPED, TRAIN, fill
from mlcd_fixtures.examples import at_night_except

from mlcd.core.home import open_ledger
from mlcd.core.ledger import Decided, Ledger, Line
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.functions.nouns import FunctionsTask, plan_of
from mlcd.planners.functions.prepare import boundary_of
from mlcd.reports.html import page as report_of

EXAMPLES = Path(__file__).parents[2] / "mlcd" / "service" / "web" / "examples"
CHARTS = {
    "demo-1": {"Search path", "Spend against limit", "Time against cost"},
    "elastic-1": {"Search path", "Spend against limit", "Time against cost"},
    "net-a-1": {"Latency against throughput", "Best so far", "Spend against limit", "Key operators"},
    "tuned-1": {
        "Trials: hyperparameters and loss",
        "Stages of each plan",
        "Loss by stage",
        "Time and cost of an epoch",
        "Spend against limit",
    },
    "trained-1": {"Loss by epoch", "Time and cost of an epoch", "Spend over time"},
    "infeasible": {"Search path", "Spend against limit", "Time against cost"},
    "interrupted": {"Search path", "Spend against limit", "Time against cost"},
    STOPPED: set(),
}
"""What is drawn for each run: of every kind, and of those that did not come to their end."""
PRINTED = """() => addEventListener('beforeprint', () => window.printed = {
    folded: document.querySelectorAll('details:not([open])').length,
    closed: document.querySelectorAll('[aria-expanded=false]').length,
    rows: document.querySelectorAll('.opened:has(.faint) tbody tr').length,
    widths: [...document.querySelectorAll('.chart-box svg[role=img]')].map(each => each.getAttribute('width')),
})"""


@dataclass
class Opened:
    """A page, and all that it asked for and complained about."""

    page: Any
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of every kind of run, and of one that found nothing and one whose process is gone."""
    folder = tmp_path_factory.mktemp("reports")
    ledger = open_ledger(folder / "home")
    examples = {kind: (EXAMPLES / f"{kind}.yaml").read_text() for kind in ("scale", "tune", "functions")}
    fill(ledger, folder / "recordings", examples)
    assert start(job_from_text("train", TRAIN.replace("$60", "$1.60"), {}), ledger).search().configuration is None
    written = {run: ledger.lines(run) for run in (*KINDS, STOPPED)}
    written |= {"infeasible": ledger.lines("last"), "interrupted": written["demo-1"][:6]}
    last = next(i for i, line in enumerate(written["demo-1"]) if isinstance(line.entry, Decided))
    written |= {"decided": written["demo-1"][: last + 1]}
    found = {name: _written(folder / f"{name}.html", lines, ledger) for name, lines in written.items()}
    ledger.close()
    return found


def _written(path: Path, lines: list[Line], ledger: Ledger) -> Path:
    account = ledger.account(lines[0].run)
    on_functions = isinstance(account.job.ask, FunctionsTask) and account.decision is not None
    boundary = boundary_of(account.job, plan_of(account.decision).calibration) if on_functions else ()
    path.write_text(report_of(lines, boundary))
    return path


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    found = Opened(context.new_page())
    found.page.on("request", lambda request: found.asked.append(request.url))
    found.page.on("console", lambda message: found.complaints.append(message.text))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    yield found
    context.close()


@pytest.mark.parametrize("run", at_night_except(("demo-1",), CHARTS))
def test_from_disk_it_draws_everything_asks_for_nothing_and_prints(opened, reports, run):
    page, address = opened.page, reports[run].as_uri()
    page.goto(address)
    page.locator("h1").wait_for()
    for title in CHARTS[run]:
        page.locator(".chart", has_text=title).locator("svg[role=img]").first.wait_for()
    assert {each.inner_text() for each in page.locator(".chart h2").all()} == CHARTS[run]
    assert page.locator(".answer").inner_text()
    assert page.locator("a[href], form, .page-head button").count() == 0  # nothing leads away, and nothing acts
    page.evaluate(PRINTED)
    pdf = page.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > (1 if CHARTS[run] else 0)
    printed = page.evaluate("window.printed")
    assert (printed["folded"], printed["closed"]) == (0, 0)
    assert printed["rows"] > 0
    assert set(printed["widths"]) <= {"690"}
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.asked == [address]
    assert opened.complaints == []


def test_what_is_folded_opens_without_a_network(opened, reports):
    opened.page.goto(reports["net-a-1"].as_uri())
    for folded in opened.page.locator(".opened > summary").all():
        folded.click()
    for words in ("To reproduce", "mlcd serve", "Amounts in brackets", "inferenceservice.yaml", "compose"):
        opened.page.locator(".papers").get_by_text(words).first.wait_for()
    assert len(opened.asked) == 1
    assert opened.complaints == []


FORBIDDEN = """() => {
    window.stopped = [];
    addEventListener('securitypolicyviolation', event => stopped.push(event.effectiveDirective));
    const add = (tag, more) => document.body.append(Object.assign(document.createElement(tag), more));
    add('img', {src: 'http://127.0.0.1:9/'});
    add('script', {textContent: 'window.ran = 1'});
    return fetch('http://127.0.0.1:9/').catch(() => 0);
}"""


def test_no_request_can_leave_it_and_no_other_script_can_run_in_it(opened, reports):
    page = opened.page
    page.goto(reports["demo-1"].as_uri())
    page.locator("h1").wait_for()
    page.evaluate(FORBIDDEN)
    page.wait_for_function("stopped.length === 3")
    assert set(page.evaluate("stopped")) == {"connect-src", "img-src", "script-src-elem"}
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize(
    ("run", "command"), [("infeasible", "mlcd resume demo-5 --budget "), ("decided", "mlcd launch demo-1")]
)
def test_a_report_says_the_command_that_goes_on(opened, reports, run, command):
    page = opened.page
    page.goto(reports[run].as_uri())
    page.locator(".answer").wait_for()
    assert page.locator(".answer-part code").first.inner_text().startswith(command)
    assert opened.complaints == []
