"""The pages in a real browser: submit, watch, ask what if, read the report, resume; who may not, and who is nobody."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.home import open_ledger
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text

pytestmark = pytest.mark.live

DEMO = "resnet50-1"
SCALE = Path(__file__).parents[2] / "mlcd" / "service" / "web" / "examples" / "scale.yaml"
JOB = """
name: watched
run: python train.py
mlcd:
  work: 2M
  parameters: 25M
  flops_per_sample: 12G
  goal: fastest
  budget: $40
  search: {nodes: 1..8, instances: [c5.xlarge, g4dn.xlarge, p3.2xlarge, g6.xlarge], seed: 1}
"""
STANDINGS = """
const look = () => window.stood.add(document.querySelector('.run-about .status')?.textContent);
window.stood = new Set();
new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
"""
MOVED = """
window.moved = 0;
new PerformanceObserver(list => list.getEntries().forEach(each => { window.moved += each.value; }))
  .observe({type: 'layout-shift', buffered: true});
"""
KILLED = """
import os, signal, sys
from mlcd.core.home import open_ledger
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job
settled = 0
def listen(line):
    global settled
    settled += line.entry.kind == "settled"
    if settled == 3:
        os.kill(os.getpid(), signal.SIGKILL)
run = start(load_job(sys.argv[1]), open_ledger(), listen)
with run.hold():
    run.search()
"""


def job_file(folder: Path) -> Path:
    path = folder / "watched.yaml"
    path.write_text(JOB)
    return path


def submitted(page: Any, url: str, path: Path) -> None:
    page.goto(f"{url}/submit")
    page.get_by_label("A job file or an ONNX model").set_input_files(path)
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Start").click()


def test_a_job_is_submitted_watched_to_its_decision_and_run(page, ui, expect, tmp_path):
    submitted(page, ui.url, job_file(tmp_path))
    page.wait_for_url("**/runs/watched-1")
    page.evaluate("window.stayed = true")  # gone if the page were loaded again
    page.evaluate(STANDINGS)
    expect(page.get_by_role("button", name="Launch it …")).to_be_visible()
    answer = page.get_by_label("The answer")
    expect(answer).to_contain_text(" x ")
    expect(page.get_by_role("heading", name="Every probe")).to_be_visible()
    assert page.evaluate("window.stayed") is True
    page.get_by_role("button", name="Launch it …").click()
    page.get_by_role("dialog").get_by_role("button", name="Launch it").click()
    expect(answer).to_contain_text("finished")
    assert page.evaluate("window.stayed") is True
    stood = page.evaluate("[...window.stood]")
    assert "finished" in stood
    assert "interrupted" not in stood  # though for a moment after each start nobody drives it
    ledger = open_ledger(ui.home)
    account = ledger.account("watched-1")
    ledger.close()
    assert account.status == "finished"
    assert str(account.decision.configuration) in answer.inner_text()


def test_a_job_with_a_mistake_is_told_where_it_is_and_nothing_is_begun(page, ui, expect):
    ledger = open_ledger(ui.home)
    before = ledger.runs()
    page.goto(f"{ui.url}/submit")
    page.locator("#job").fill("name: x\nrun: python train.py\nmlcd:\n  work: many\n")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#job-mistakes")).to_contain_text("line 4mlcd.work 'many': expected a positive number")
    expect(page.get_by_role("button", name="Check")).to_be_enabled()
    expect(page.get_by_role("button", name="Start")).to_have_count(0)
    assert ledger.runs() == before
    assert ledger.waiting() == []
    ledger.close()


def test_real_money_is_spent_only_by_a_button_that_says_how_much(page, ui, expect, tmp_path):
    path = tmp_path / "rented.yaml"
    path.write_text(JOB.replace("name: watched", "name: rented").replace("goal:", "on: skypilot:aws\n  goal:"))
    page.goto(f"{ui.url}/submit")
    page.get_by_label("A job file or an ONNX model").set_input_files(path)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("button", name="Yes, spend up to $40.00")).to_be_visible()
    expect(page.locator(".notice")).to_contain_text("Rents real machines, up to $40.")
    expect(page.locator(".outcome")).to_contain_text("at most $")
    expect(page.locator(".outcome")).to_contain_text("an hour")
    expect(page.locator(".outcome")).to_contain_text("aws: ")
    page.locator("#job").press("Control+Enter")  # keys do not agree to real money
    with closing(open_ledger(ui.home)) as ledger:
        assert ledger.waiting() == []
        assert not any(run.startswith("rented") for run in ledger.runs())


def finished_demo(page: Any, ui: Any, expect: Any) -> None:
    """The example's run, to its end: `mlcd ui` has begun it."""
    page.goto(f"{ui.url}/runs/{DEMO}")
    expect(page.get_by_label("The answer")).to_contain_text("finished")


def test_on_a_fresh_machine_the_pages_open_on_the_examples_run(page, ui, expect):
    assert ui.first_words[-1].split("  ")[0].endswith(f"/runs/{DEMO}")
    finished_demo(page, ui, expect)
    page.goto(ui.url)
    expect(page.get_by_role("link", name=DEMO, exact=True)).to_be_visible()


def test_another_budget_is_another_choice_at_no_cost(page, ui, expect):
    finished_demo(page, ui, expect)
    before = entries_of(ui.home)
    page.goto(f"{ui.url}/runs/{DEMO}/explore")
    decided = page.get_by_label("Decision under these limits")
    expect(decided).to_contain_text("The same choice as in the run.")
    slider = page.get_by_role("slider", name="Budget", exact=True)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    at = slider.evaluate("each => (each.value - each.min) / (each.max - each.min)")
    page.mouse.move(box["x"] + box["width"] * at, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.95, middle, steps=5)
    page.mouse.up()
    expect(decided).to_contain_text("Instead of")
    page.keyboard.press("Home")  # the slider has the focus: less than anything takes
    expect(decided).to_contain_text("Infeasible")
    page.get_by_role("button", name=re.compile(r"^Set \$")).first.click()
    expect(decided).not_to_contain_text("Infeasible")
    assert entries_of(ui.home) == before


@pytest.mark.night  # at each change: the same with a training run
def test_an_elastic_run_that_claims_no_time_has_its_limits_and_its_knee_to_look_at(page, ui, expect, monkeypatch):
    monkeypatch.setenv("MLCD_HOME", str(ui.home))  # nobody has trained it before
    ledger = open_ledger(ui.home)
    run = start(replace(job_from_text("scale", SCALE.read_text(), {}), name="elastic"), ledger)
    with run.hold():
        decision = run.search()
    ledger.close()
    page.goto(f"{ui.url}/runs/{run.name}/explore")
    decided = page.get_by_label("Decision under these limits")
    expect(decided).to_contain_text("The same choice as in the run.")
    expect(decided).to_contain_text("Time of all the work")
    ranked = page.get_by_role("figure", name="Relative time and cost to the target")
    knee = next(str(each.configuration) for each in decision.curve if each.knee)
    expect(ranked.get_by_role("img")).to_have_attribute("aria-label", re.compile(f"the knee is {knee}; "))
    handle = page.get_by_role("slider", name="Budget, on the chart")
    handle.focus()
    page.keyboard.press("Home")
    expect(decided).to_contain_text("Infeasible")


def test_a_limit_moves_on_the_chart_by_keys(page, ui, expect):
    finished_demo(page, ui, expect)
    page.goto(f"{ui.url}/runs/{DEMO}/explore")
    handle = page.get_by_role("slider", name="Budget, on the chart")
    decided = page.get_by_label("Decision under these limits")
    expect(handle).to_have_attribute("aria-valuetext", "$100.00")
    handle.focus()
    reached = [at(handle)]
    for key in ("ArrowUp", "PageUp", "End"):
        page.keyboard.press(key)
        reached.append(at(handle))
    assert reached == sorted(set(reached))
    expect(decided).to_contain_text("Instead of")
    for key in ("ArrowDown", "PageDown", "Home"):
        page.keyboard.press(key)
        reached.append(at(handle))
    assert reached[3:] == sorted(set(reached[3:]), reverse=True)
    expect(decided).to_contain_text("Infeasible")
    expect(handle).to_be_focused()
    expect(page.get_by_role("slider", name="Budget", exact=True)).to_have_attribute(
        "aria-valuetext", str(handle.get_attribute("aria-valuetext"))
    )


@pytest.mark.night  # at each change: by keys
def test_a_limit_moves_on_the_chart_by_a_finger_and_the_page_stays(browser, ui, expect):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    phone = context.new_page()
    finished_demo(phone, ui, expect)
    phone.goto(f"{ui.url}/runs/{DEMO}/explore")
    handle = phone.get_by_role("slider", name="Budget, on the chart")
    decided = phone.get_by_label("Decision under these limits")
    expect(decided).to_contain_text("The same choice as in the run.")
    handle.scroll_into_view_if_needed()
    before, top = at(handle), phone.locator(".limits").bounding_box()["y"]
    box = handle.locator(".grip").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = context.new_cdp_session(phone)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for up in (20, 40, 60, 80):
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - up}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(decided).to_contain_text("Instead of")
    assert at(handle) > before
    assert phone.locator(".limits").bounding_box()["y"] == pytest.approx(top, abs=2)
    context.close()


def test_what_is_asked_is_in_the_address_and_in_a_command_that_answers_the_same(page, ui, expect):
    finished_demo(page, ui, expect)
    page.goto(f"{ui.url}/runs/{DEMO}/explore?budget=250&goal=cheapest")
    decided = page.get_by_label("Decision under these limits")
    expect(decided.locator(".asked")).to_contain_text("cheapest within $250.00")
    page.get_by_role("radio", name="fastest").check()
    page.get_by_role("textbox", name="Budget").fill("300")
    page.wait_for_url(f"**/runs/{DEMO}/explore?budget=300")
    chosen = decided.locator(".verdict-line")
    expect(decided.locator(".asked")).to_contain_text("fastest within $300.00")
    program, *arguments = shlex.split(decided.locator(".command code").inner_text())
    assert program == "mlcd"
    told = subprocess.run(
        [sys.executable, "-m", "mlcd", *arguments, "-o", "json"],
        env={**os.environ, "MLCD_HOME": str(ui.home)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    configuration = json.loads(told.stdout)["decision"]["configuration"]
    expect(chosen).to_have_text(f"{configuration['nodes']} x {configuration['instance_type']}")
    page.reload()
    expect(decided.locator(".asked")).to_contain_text("fastest within $300.00")


def test_a_tab_tells_how_its_run_stands_and_keys_are_told(page, ui, expect):
    finished_demo(page, ui, expect)
    expect(page).to_have_title(f"✓ finished: {DEMO} – MLCD")
    assert page.locator("link[rel=icon]").get_attribute("href") == "/icon-good.svg"
    assert page.request.get(f"{ui.url}/icon-good.svg").headers["content-type"] == "image/svg+xml"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("r")
    expect(page).to_have_title("Runs – MLCD")


@pytest.mark.night  # at each change: pages/src/parts/csv.test.ts, by the hash of its last build
def test_the_runs_as_a_table_for_a_spreadsheet_add_up_to_the_ledger(page, ui, expect):
    finished_demo(page, ui, expect)
    page.goto(f"{ui.url}/runs?text={DEMO}")
    expect(page.locator(".runs tbody tr")).to_have_count(1)
    with page.expect_download() as taken:
        page.get_by_role("button", name="Download as CSV").click()
    assert taken.value.suggested_filename == "mlcd-runs.csv"
    (row,) = csv.DictReader(taken.value.path().read_text().splitlines())
    ledger = open_ledger(ui.home)
    account = ledger.account(DEMO)
    ledger.close()
    assert (row["run"], row["status"], row["provenance"]) == (DEMO, "finished", "simulated")
    assert float(row["spent_usd"]) == pytest.approx(account.history.spent_usd)


def at(handle: Any) -> float:
    """Where a slider stands."""
    return float(handle.get_attribute("aria-valuenow"))


def entries_of(home: Path, run: str = DEMO) -> int:
    ledger = open_ledger(home)
    entries = len(ledger.lines(run))
    ledger.close()
    return entries


def test_the_report_and_every_dollar_are_one_click_away(page, ui, expect):
    finished_demo(page, ui, expect)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the report").click()
    report = opened.value
    expect(report.get_by_role("heading", level=1)).to_be_visible()
    assert DEMO in report.content()
    page.locator("summary", has_text="The ledger").click()
    expect(page.locator("details[open] tbody tr")).to_have_count(entries_of(ui.home))


@pytest.mark.night  # at each change: the button in test_live_in_browser.py, a killed run in test_crashes.py
def test_a_killed_run_is_resumed_and_pays_for_no_probe_twice(page, serve, expect, tmp_path):
    home = tmp_path / "home"
    environment = {**os.environ, "MLCD_HOME": str(home)}
    command = [sys.executable, "-c", KILLED, str(job_file(tmp_path))]
    assert subprocess.run(command, env=environment, check=False).returncode == -9
    ledger = open_ledger(home)
    before = ledger.account("watched-1").history.measurements
    assert len(before) >= 3
    page.goto(f"{serve(home, 'ui', '--no-browser', '--port', '0').url}/runs/watched-1")
    expect(page.locator(".run-about .status")).to_have_text("interrupted")
    page.get_by_role("button", name="Resume …").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Launch it …")).to_be_visible()
    after = ledger.account("watched-1")
    ledger.close()
    assert after.history.measurements[: len(before)] == before
    assert after.decision is not None


@pytest.mark.night  # at each change: what each role may do in service/web/test_identity.py
def test_a_viewer_may_not_run_and_a_wrong_token_is_nobody(page, serve, expect, postgres_url, tmp_path):
    there = {"MLCD_DATABASE_URL": postgres_url}
    served = serve(tmp_path / "home", "service", "--port", "0", "--workers", "1", **there)
    admin = re.findall(r"mlcd_[\w-]{43}", "".join(served.first_words))[0]
    page.goto(served.url)
    page.get_by_label("Token").fill("mlcd_" + 43 * "x")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".sign-in .field-error")).to_contain_text("no member has this token")
    page.get_by_label("Token").fill(admin)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    submitted(page, served.url, job_file(tmp_path))
    expect(page.get_by_role("button", name="Launch it …")).to_be_visible()

    page.goto(f"{served.url}/team")
    token = new_member(page, "vera", "viewer")
    context = page.context.browser.new_context()
    other = context.new_page()
    other.goto(f"{served.url}/runs/watched-1")
    other.get_by_label("Token").fill(token)
    other.get_by_role("button", name="Sign in").click()
    expect(other.locator(".may-not")).to_have_text("Your role is viewer: only runners can act on runs.")
    expect(other.get_by_role("button", name="Launch it …")).to_have_count(0)
    refused = other.evaluate(
        "fetch('/api/v1/runs/watched-1/launch', {method: 'POST', headers: {'X-MLCD': '1'}}).then(r => r.status)"
    )
    assert refused == 403
    other.goto(f"{served.url}/submit")
    expect(other.locator(".notice")).to_contain_text("Your role is viewer")
    context.close()


def new_member(page: Any, name: str, role: str) -> str:
    """Add a member as an admin does; the token that is shown once."""
    page.get_by_role("table", name="Members").wait_for()  # it pushes the form down as it comes
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Role", exact=True).select_option(role)
    page.get_by_role("button", name="Add").click()
    return str(page.locator(".token code").inner_text())


def test_the_answer_comes_first_and_the_probes_are_ordered_by_any_column(page, ui, expect):
    finished_demo(page, ui, expect)
    tops = [page.get_by_role("figure", name=name).bounding_box()["y"] for name in ("Time against cost", "Search path")]
    headline = page.locator(".answer")
    assert re.fullmatch(r"\d+ x \S+ · .+ · \$[\d.]+ · fits \$100", headline.inner_text())
    assert headline.bounding_box()["y"] < tops[0] < tops[1]
    reserve = page.get_by_label("Certificate")
    expect(reserve.locator(".equation").first).not_to_be_visible()
    reserve.locator("summary").click()
    expect(reserve.locator(".equation").first).to_be_visible()
    table = page.get_by_role("region", name="Every probe, in order")
    column = [head.inner_text().strip() for head in table.locator("thead th").all()].index("$/h")
    table.get_by_role("button", name="$/h").click()
    expect(table.locator("th[aria-sort=ascending]")).to_contain_text("$/h")
    rates = [float(row.locator("td").nth(column - 1).inner_text()[1:]) for row in table.locator("tbody tr").all()]
    assert rates == sorted(rates)
    assert "x " in table.inner_text()


def test_from_an_infeasible_answer_one_goes_straight_on_with_what_would_be_enough(page, ui, expect, monkeypatch):
    monkeypatch.setenv("MLCD_HOME", str(ui.home))
    with closing(open_ledger(ui.home)) as ledger:
        run = start(replace(job_from_text("train", JOB, {"budget": "$1"}), name="poor"), ledger)
        with run.hold():
            assert run.search().configuration is None
    page.goto(f"{ui.url}/runs/{run.name}")
    page.get_by_role("button", name=re.compile(r"^Search with \$")).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("its measurements are kept and not paid for again")
    expect(dialog).to_contain_text(f"mlcd resume {run.name} --budget")
    dialog.get_by_role("button", name="Search").click()
    expect(page.locator(".answer")).to_contain_text("fits $")
    with closing(open_ledger(ui.home)) as ledger:
        assert ledger.account(run.name).status == "decided"


def test_from_a_what_if_a_new_run_of_a_finished_job_begins(page, ui, expect):
    finished_demo(page, ui, expect)
    page.goto(f"{ui.url}/runs/{DEMO}/explore?budget=165")
    page.get_by_role("button", name="Search with $165 …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("A new run of the same job starts and measures from the beginning")
    dialog.get_by_role("button", name="Search").click()
    page.wait_for_url(re.compile(r"/runs/[^/]+-\d+$"))
    assert not page.url.endswith(DEMO)
    expect(page.locator(".answer")).to_contain_text("fits $165")


def test_what_a_place_that_rents_would_do_is_shown_as_soon_as_it_is_chosen(page, ui, expect):
    page.goto(f"{ui.url}/submit")
    page.locator("#job").fill(JOB.replace("run: ", "resources: {infra: aws}\nrun: "))
    page.get_by_label("Where", exact=True).select_option("skypilot")
    expect(page.get_by_role("button", name="Yes, spend up to $40.00")).to_be_visible()
    expect(page.locator(".outcome")).to_contain_text("Outlook")
    page.get_by_label("Where", exact=True).select_option("simulated")
    expect(page.get_by_role("button", name="Check")).to_be_visible()
    expect(page.locator(".notice")).to_have_count(0)


def test_a_job_file_is_on_the_page_of_its_run_and_can_be_changed_and_run(page, ui, expect, tmp_path):
    path = tmp_path / "edited.yaml"
    path.write_text(JOB.replace("name: watched", "name: edited"))
    submitted(page, ui.url, path)
    page.wait_for_url("**/runs/edited-1")
    expect(page.get_by_role("button", name="Launch it …")).to_be_visible()
    page.get_by_text("The job file", exact=True).click()
    expect(page.get_by_label("edited.yaml")).to_contain_text("name: edited")
    page.get_by_role("link", name="Edit and run").click()
    expect(page.locator("#job")).to_contain_text("name: edited")
    page.locator("#job").fill(path.read_text().replace("$40", "$45"))
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/edited-2")
    expect(page.get_by_role("button", name="Run again …")).to_be_visible()
    expect(page.locator(".answer")).to_contain_text("fits $45")
    page.get_by_role("button", name="Run again …").click()
    page.get_by_role("dialog").get_by_role("button", name="Run again").click()
    page.wait_for_url("**/runs/edited-3")


def test_nothing_on_the_page_of_a_run_moves_once_it_is_there(page, ui, expect):
    held: list[Any] = []
    page.add_init_script(MOVED)
    page.route("**/tradeoff", lambda route: held.append(route))
    page.goto(f"{ui.url}/runs/{DEMO}")
    expect(page.get_by_label("The answer")).to_contain_text(" x ")  # before the charts, which are a second question
    expect(page.get_by_text("Reading the measurements")).to_be_visible()
    for each in held:
        each.continue_()
    expect(page.get_by_role("heading", name="Time against cost")).to_be_visible()
    expect(page.get_by_role("heading", name="Every probe")).to_be_visible()
    expect(page.locator(".chart-box > div > svg")).to_have_count(3)
    assert page.evaluate("window.moved") < 0.05  # of the window; what jumped was 0.3 of it
