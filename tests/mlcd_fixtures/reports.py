"""The contents of a report: the API answers behind its page, and all of their text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input"}


class _Reader(HTMLParser):
    """Fails on a tag that closes another one, and collects what the elements hold by their tag and id."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.found: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id") or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.found.append((*self.open[-1], data))


def inside(report: str) -> dict[str, Any]:
    """The data of a report, read as a browser does; the page itself is well-formed and has two scripts, both ours."""
    reader = _Reader()
    reader.feed(report)
    reader.close()
    assert reader.open == []
    scripts = [(name, text) for tag, name, text in reader.found if tag == "script"]
    assert [name for name, _ in scripts] == ["run", ""]
    found: dict[str, Any] = json.loads(scripts[0][1])
    return found


def view(report: str) -> Any:
    """The run as its page shows it."""
    return inside(report)["answers"][""]


def tables(report: str) -> dict[str, Any]:
    """The tables by their titles."""
    return {table["title"]: table for table in inside(report)["answers"]["/tables"]["tables"]}


def words(report: str) -> str:
    """All words of the data, one text after another."""
    return "\n".join(_texts(inside(report)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
