"""The reference of the command line is what click says today, and what was written by hand stays in it."""

from __future__ import annotations

import pytest
from cli_page import PAGE, written_again


def test_the_reference_is_what_click_says():
    page = PAGE.read_text(encoding="utf-8")
    assert written_again(page) == page, "run: python tests/docs/cli_page.py"


def test_what_click_says_is_mended_and_what_was_written_by_hand_stays():
    page = PAGE.read_text(encoding="utf-8")
    note = "| overrides the file's `goal` |"
    assert page.count(note) == 1
    damaged = page.replace("| What to minimise. |", "| Anything. |").replace("## mlcd check [WHAT]", "## mlcd check")
    assert damaged != page
    assert written_again(damaged) == page


def test_a_command_without_a_section_and_a_note_without_an_option_are_named():
    page = PAGE.read_text(encoding="utf-8")
    with pytest.raises(LookupError, match="no section for: mlcd launch"):
        written_again(page.replace("## mlcd launch RUN", "## Something else"))
    with pytest.raises(LookupError, match="'mlcd train' does not have: --wish"):
        written_again(page.replace("| `--goal fastest\\|cheapest` |", "| `--wish` |", 1))
