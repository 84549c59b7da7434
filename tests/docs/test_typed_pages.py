"""What a page shows after `$ mlcd ...` is what comes, where nothing depends on the machine."""

from __future__ import annotations

import pytest
from typed_pages import STORIES, Typed, story


@pytest.mark.parametrize("pages", STORIES, ids=[pages[0] for pages in STORIES])
def test_what_a_page_shows_is_what_comes(pages: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLCD_HOME", "of the story")
    monkeypatch.delenv("MLCD_SERVER", raising=False)
    seen = list(story(pages))
    assert len(seen) >= 1
    for path, one in seen:
        assert one.is_same, f"{path.name}, $ {one.command}: see python tests/docs/typed_pages.py\n{one.came}"


def test_what_is_left_out_may_be_anything_and_the_rest_may_not():
    def same(shown: str) -> bool:
        return Typed("mlcd", shown, "one\ntwo  \n\nat 2026-11-16 13:50 it was $3\n").is_same

    assert same("one\ntwo\n\nat 2020-01-01 00:00 it was $3\n")
    assert same("one\n...\nat 2020-01-01 00:00 it was $3\n")
    assert not same("one\n...\nat 2020-01-01 00:00 it was $4\n")
    assert not same("one\ntwo\n")
    assert Typed("mlcd", "one\n...\nthree\n", "1\n2\n3\n4\n").anew == "1\n...\n4\n"
    assert Typed("mlcd", "one\n...\nthree 3\n", "1\n2\nthree 4\n4\n").anew == "1\n...\nthree 4\n4\n"
