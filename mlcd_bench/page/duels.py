"""Wins and losses of the method in focus, against each rival and by recording."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd_bench.page.cells import cell, gap, number, table
from mlcd_bench.page.data import Duel, Focus, Panel, Place
from mlcd_bench.page.svg import element, text

_DUELS = (
    ("Against", ""), ("Wins", "num"), ("Ties", "num"), ("Losses", "num"), ("Wins by", "num far"),
    ("Loses by", "num"), ("Worst loss", "num"), ("On", "far"),
)  # fmt: skip


def duels(focus: Focus) -> str:
    """The method in focus against each rival, over the same problems and seeds."""
    rows = [_duel(duel) for duel in focus.duels]
    return table(f"{focus.method} against each rival", _DUELS, rows, "duels")


def places(focus: Focus) -> str:
    """For each panel, collapsed: the best method of each recording, and how far behind the method in focus is."""
    return "".join(_panel(focus.method, panel, rows) for panel, rows in focus.places if rows)


def _duel(duel: Duel) -> str:
    cells = [
        element("th", text(duel.rival), scope="row"),
        cell(f"{duel.wins:,}", "num wins"),
        cell(f"{duel.ties:,}", "num"),
        cell(f"{duel.losses:,}", "num bad" if duel.losses else "num"),
        cell(gap(duel.won_by), "num far"),
        cell(gap(duel.lost_by), "num"),
        cell(gap(duel.worst_loss), "num"),
        cell(text(duel.worst_on), "far"),
    ]
    return element("tr", *cells)


def _panel(method: str, panel: Panel, rows: Sequence[Place]) -> str:
    won = sum(place.best == method for place in rows)
    summary = f"{panel.title}: best on {won} of {len(rows)}"
    columns = (("Recording", ""), ("Best", ""), ("Its median", "num"), (text(method), "num"), ("Behind by", "num"))
    drawn = table(f"Best method by recording, {panel.title}", columns, [_place(method, p) for p in rows], "places")
    return element("details", element("summary", text(summary)), drawn)


def _place(method: str, place: Place) -> str:
    if place.best == method:
        behind = cell("best", "num wins")
    elif place.median is None:
        behind = cell("refuses", "num bad")
    else:
        behind = cell(gap(place.median / place.best_median - 1), "num bad")
    cells = [
        element("th", text(place.recording), scope="row"),
        cell(text(place.best)),
        cell(number(place.best_median), "num"),
        cell(number(place.median), "num"),
        behind,
    ]
    return element("tr", *cells)
