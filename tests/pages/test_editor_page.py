"""The editor of job files, in a real browser: mistakes as one types, completion, keys; and without its script."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.live

JOB = """name: typed
run: python train.py
mlcd:
  work: 2M
  gaol: fastest
  budget: much
  search: {nodes: 1..4, instances: [c5.xlarge, g4dn.xlarge], seed: 1}
"""
EDITOR = ".cm-content#job"
MARK = ".cm-lintRange-error"


@pytest.fixture
def editor(page: Any, ui: Any, expect: Any) -> Any:
    """The editor, in place of the text area, once it knows the schema."""
    page.goto(f"{ui.url}/submit")
    expect(page.locator(EDITOR)).to_have_attribute("aria-autocomplete", "list")
    return page.locator(EDITOR)


def test_mistakes_are_marked_as_one_types_and_what_is_meant_is_offered(page, editor, expect):
    editor.fill(JOB)
    expect(page.locator("#job-mistakes [role=status]")).to_have_text("2 mistakes")
    expect(page.locator(MARK)).to_have_text(["gaol", "budget: much"])
    expect(editor).to_have_attribute("aria-invalid", "true")
    expect(editor).to_have_attribute("aria-describedby", "job-mistakes")
    page.locator("#job-mistakes button").first.click()
    expect(editor).to_be_focused()
    page.locator(MARK).first.hover()
    page.get_by_role("button", name="Write goal").click()
    expect(page.locator("#job-mistakes [role=status]")).to_have_text("1 mistake")
    expect(editor).to_contain_text("goal: fastest")


def test_a_mistake_leads_to_its_line_a_completion_is_taken_and_the_job_starts(page, editor, expect):
    editor.fill(JOB.replace("gaol", "goal"))
    page.locator("#job-mistakes button").click()
    page.keyboard.press("Shift+End")
    page.keyboard.type("budget: $40")
    expect(page.locator("#job-mistakes [role=status]")).to_have_text("No mistakes")
    page.keyboard.press("Enter")
    page.keyboard.type("confi")
    option = page.get_by_role("option", name="confidence")
    expect(option).to_be_visible()
    expect(page.locator(".cm-completionInfo")).to_contain_text("The probability that a certified job ends within")
    option.click()
    page.keyboard.type("99 %")
    page.keyboard.press("Escape")
    expect(editor).to_contain_text("confidence: 99 %")
    expect(page.locator("#job-mistakes [role=status]")).to_have_text("No mistakes")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/runs/typed-1")


def test_values_are_completed_at_their_key_and_no_others(page, editor, expect):
    editor.fill("mlcd:\n  goal: ")
    editor.press("Control+End")
    page.keyboard.press("Control+Space")
    offered = page.locator(".cm-tooltip-autocomplete [role=option]")
    expect(offered).to_have_text(["cheapest", "fastest", "knee", "per-dollar"])
    page.keyboard.press("Escape")
    page.keyboard.type("fastest\n")
    page.keyboard.type("on: rec")
    expect(page.locator(".cm-tooltip-autocomplete")).to_have_count(0)  # no recording is here
    page.keyboard.press("Control+a")
    page.keyboard.type("resources: {acc")
    expect(offered).to_have_text(["accelerators"])


def test_tab_indents_and_escape_then_tab_leaves(page, editor, expect):
    editor.fill("mlcd:\nwork: 1M")
    editor.press("Control+End")
    page.keyboard.press("Tab")
    expect(editor).to_contain_text(re.compile(r"mlcd:\s+work: 1M"))
    assert page.locator(".cm-line").nth(1).text_content() == "  work: 1M"
    page.keyboard.press("Control+z")
    assert page.locator(".cm-line").nth(1).text_content() == "work: 1M"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
    assert not page.evaluate("document.querySelector('.editor').contains(document.activeElement)")


def test_without_its_script_a_text_area_remains_that_works(page, ui, expect):
    page.route("**/page-editor.js", lambda route: route.abort())
    page.goto(f"{ui.url}/submit")
    area = page.locator("textarea#job")
    area.fill(JOB)
    expect(page.locator("#job-mistakes [role=status]")).to_have_text("2 mistakes")
    page.locator("#job-mistakes button").last.click()
    expect(area).to_be_focused()
    assert area.evaluate("each => each.value.slice(each.selectionStart, each.selectionEnd)") == "  budget: much"
    area.fill(JOB.replace("gaol", "goal").replace("much", "$40").replace("typed", "plain"))
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/plain-1")


def test_other_pages_do_not_load_it(page, ui, expect):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(ui.url)
    expect(page.locator("h1")).to_be_visible()
    assert [url for url in asked if "editor" in url] == []


def test_it_keeps_to_the_policy_of_the_pages(page, ui, expect):
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(f"{ui.url}/submit")
    expect(page.locator(EDITOR)).to_be_visible()
    page.locator(EDITOR).fill(JOB)
    expect(page.locator(MARK).first).to_be_visible()
    assert complaints == []
