"""A comparison as one self-contained HTML page: no network, no script, no font."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from mlcd.core.units import counted
from mlcd_bench.page.cells import percent
from mlcd_bench.page.data import Contest, Focus, Standing, Trace
from mlcd_bench.page.duels import duels, places
from mlcd_bench.page.paths import title, trace
from mlcd_bench.page.standings import heat, standings
from mlcd_bench.page.svg import element, marker, text

WIDE, NARROW = 840, 350
MOST_CRASHES = 20

_HEAT_NOTE = (
    "Median of total over oracle. 1 would be perfect, but cannot be reached, since the oracle pays for no probes. "
    "Below it the share of runs that chose a configuration. A method that refuses hard problems looks better than one "
    "that accepts them, and so does one that exceeds its limit (red)."
)
_PANEL_NOTE = (
    "Boxes go from quartile to quartile, whiskers from 5 to 95 %; the bar is the median, the dot the mean, over the "
    "runs of all recordings and seeds that chose a configuration. ★: the lowest median, refusals counting as worst, "
    "of the methods that never exceeded a limit. Intervals of the runs over their limit are Wilson's, 95 %."
)
_DUEL_NOTE = (
    "On the same problems and seeds; a refusal counts as worse than any ratio. Gaps are medians of ratio over ratio."
)
_TRACE_NOTE = (
    "Each line is one search: to the right its spending on probes, down better training. Only configurations within "
    "the limit count. The mark is the choice; dashed lines are raw. Long searches are cut off."
)


def page(contest: Contest) -> str:
    """The page."""
    style = files("mlcd_bench.page").joinpath("page.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        + '<meta name="color-scheme" content="light dark"><meta name="generator" content="MLCD">'
        + element("title", text("Methods against an oracle – MLCD"))
        + element("style", style)
    )
    main = element("main", _header(contest), *_sections(contest))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{main}{_footer(contest)}</body></html>\n'


def _header(contest: Contest) -> str:
    recordings, methods = len(contest.recordings), len({s.method for s in _all(contest)})
    about = ", ".join((counted(recordings, "recording"), counted(methods, "method"), counted(contest.runs, "run")))
    content = [
        element("p", element("span", text(about)), class_="about"),
        element("h1", text("Methods against an oracle that never probes")),
        element("p", text(_answer(contest)), class_="answer"),
    ]
    if contest.crashes:
        shown = "".join(element("li", text(words)) for words in contest.crashes[:MOST_CRASHES])
        heading = element("p", text(f"Crashed, and missing below: {counted(len(contest.crashes), 'run')}"))
        content.append(element("div", heading, element("ul", shown), class_="crashes"))
    return element("header", *content)


def _answer(contest: Contest) -> str:
    focus = contest.focus
    if focus is None:
        best = [f"{panel.best} in {panel.title}" for panel in contest.panels if panel.best is not None]
        return (
            "Best: " + "; ".join(best) + "."
            if best
            else "No method with a rival kept every limit and chose in half of its runs."
        )
    mine = [s for s in _all(contest) if s.method == focus.method]
    best_in = sum(panel.best == focus.method for panel in contest.panels)
    runs, chose, over = (sum(getattr(s, name) for s in mine) for name in ("runs", "chose", "over"))
    sentence = (
        f"{focus.method} has the best median in {best_in} of {counted(len(contest.panels), 'scenario')}, chose in "
    )
    return sentence + f"{percent(chose / runs)} of its runs, and exceeded its limit in {over or 'none'}."


def _sections(contest: Contest) -> list[str]:
    sections = [_section("At a glance", heat(contest.panels), _note(_HEAT_NOTE))]
    key = element(
        "ul",
        element("li", _swatch("guarded"), "under the guard (NAME+guard)"),
        element("li", _swatch("raw"), "raw: without the guard"),
        class_="legend",
    )
    panels = [
        element("div", element("h3", text(panel.title)), standings(panel), class_="panel") for panel in contest.panels
    ]
    sections.append(_section("Ratio to the oracle", key, _note(_PANEL_NOTE), *panels))
    if contest.focus is not None:
        sections.append(_focus(contest.focus))
    if contest.traces:
        sections.append(_section("Some searches", _note(_TRACE_NOTE), *_traces(contest.traces)))
    return sections


def _focus(focus: Focus) -> str:
    form = "guarded" if "+" in focus.method else "raw"
    by_recording = element("h3", text(f"By recording: the best {form} method, largest loss first"))
    return _section(
        f"Where {focus.method} wins and loses",
        duels(focus),
        _note(_DUEL_NOTE),
        element("div", by_recording, places(focus), class_="panel"),
    )


def _traces(traces: Sequence[Trace]) -> list[str]:
    sections = []
    for number, shown in enumerate(traces):
        drawn = trace(number, shown, WIDE) + trace(number, shown, NARROW)
        names = (element("li", _mark(index), text(line.method)) for index, line in enumerate(shown.paths))
        key = element("ul", *names, class_="legend")
        sections.append(element("figure", element("h3", text(title(shown))), drawn, key))
    return sections


def _footer(contest: Contest) -> str:
    listed = "".join(element("div", element("dt", text(k)), element("dd", text(v))) for k, v in contest.facts)
    names = element("p", text("Recordings: " + ", ".join(contest.recordings)))
    return element("footer", element("dl", listed), names)


def _all(contest: Contest) -> list[Standing]:
    return [standing for panel in contest.panels for standing in panel.standings]


def _swatch(kind: str) -> str:
    mark = element("rect", x=1, y=3, width=18, height=10, class_="box")
    return element("svg", mark, viewBox="0 0 20 16", width=20, height=16, class_=kind, aria_hidden="true")


def _mark(index: int) -> str:
    return element("svg", marker(index, 8, 8), viewBox="0 0 16 16", width=16, height=16, aria_hidden="true")


def _note(words: str) -> str:
    return element("p", text(words), class_="note")


def _section(name: str, *content: str) -> str:
    return element("section", element("h2", text(name)), *content)
