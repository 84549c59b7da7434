"""The contest's numbers for a person: panels, duels, places, and the page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from mlcd.testing.clouds import small_recording
from mlcd_bench.page import Contest, page
from mlcd_bench.page.svg import Scale
from mlcd_bench.problems import Scenario, problems
from mlcd_bench.summary import focus_on, summarise
from mlcd_bench.traces import traces
from mlcd_bench.train import Result, Setting, run

VOID = {"meta"}


def result(
    method: str = "heterbo+guard",
    ratio: float | None = 1.2,
    *,
    recording: str = "one",
    seed: int = 0,
    over: bool = False,
) -> Result:
    return Result(
        recording, "fastest-within-budget", 3.0, 30.0, method, seed, [], ("a", 1) if ratio else None, ratio is not None,
        1.0, 1.0, 10.0, 10.0, 10.0, 10.0, ratio, over,
    )  # fmt: skip


def contest_of(results: list[Result], **more: object) -> Contest:
    panels = summarise(results)
    facts = (("Seeds", "0 to 1"), ("mlcd", "0.1.0"))
    whole = Contest(tuple(panels), focus_on(results, panels), (), ("one", "two"), len(results), facts)
    return replace(whole, **more)  # type: ignore[arg-type]


class Wellformed(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_panels_are_sorted_by_median_and_the_best_never_exceeded_its_limit():
    results = [result("fast", r, seed=i, over=i == 0) for i, r in enumerate((1.0, 1.1, 1.2))]
    results += [result("sound", r, seed=i) for i, r in enumerate((1.3, 1.4, 1.5))]
    results += [result("shy", r, seed=i) for i, r in enumerate((1.2, None, None))]
    panel = summarise(results)[0]
    assert [standing.method for standing in panel.standings] == ["fast", "shy", "sound"]
    assert panel.best == "sound"
    fast, shy, sound = panel.standings
    assert (fast.over, fast.chose, shy.chose, shy.whole_median) == (1, 3, 1, None)
    assert sound.ratios is not None
    assert (sound.ratios.median, sound.ratios.mean) == pytest.approx((1.4, 1.4))


def test_violations_come_with_wilsons_interval():
    results = [result(seed=i, over=i < 2) for i in range(20)]
    standing = summarise(results)[0].standings[0]
    # p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2), over 1 + z^2/n
    z, n, p = 1.959964, 20, 0.1
    middle, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    bounds = ((middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n))
    assert (standing.over_low, standing.over_high) == pytest.approx(bounds, rel=1e-5)


def test_losses_are_reported_as_well_as_wins():
    mine, theirs = (1.0, 1.5, 1.2, None), (2.0, 1.2, 1.2, 3.0)
    results = [result("heterbo+guard", r, seed=i, recording="two" if i == 1 else "one") for i, r in enumerate(mine)]
    results += [result("rival+guard", r, seed=i, recording="two" if i == 1 else "one") for i, r in enumerate(theirs)]
    results += [result("rival", 1.0, seed=i) for i in range(4)]
    focus = focus_on(results, summarise(results))
    assert focus is not None
    (duel,) = focus.duels
    assert (duel.rival, duel.wins, duel.ties, duel.losses) == ("rival+guard", 1, 1, 2)
    assert (duel.won_by, duel.lost_by, duel.worst_on) == (pytest.approx(1.0), pytest.approx(0.25), "two")
    ((_, places),) = focus.places
    assert [(p.recording, p.best) for p in places] == [("two", "rival+guard"), ("one", "heterbo+guard")]


def test_a_trace_ends_where_the_search_did():
    recording = small_recording([[10.0, 19.0, 27.0], [30.0, 50.0, None]], [1.0, 8.0])
    found = problems([recording], [Scenario.FASTEST, Scenario.CHEAPEST_BY_DEADLINE], [3.0])
    results = [run(problem, name, 0, Setting(0.0)) for problem in found for name in ("heterbo", "heterbo+guard")]
    shown = traces(found, results, summarise(results))
    assert [(t.scenario, [p.method for p in t.paths]) for t in shown] == [
        ("fastest", ["heterbo+guard"]),
        ("cheapest-by-deadline", ["heterbo+guard"]),
    ]
    for trace, done in zip(shown, (results[1], results[3]), strict=True):
        (path,) = trace.paths
        spent = done.probing_hours / done.oracle_hours
        if trace.scenario == "cheapest-by-deadline":
            spent = done.probing_usd / done.oracle_usd
        assert path.steps[-1][0] == pytest.approx(spent)
        assert path.chosen is not None
        assert done.ratio == pytest.approx(spent + path.chosen)


def test_the_page_is_well_formed_and_self_contained():
    recording = small_recording([[10.0, 19.0, 27.0], [30.0, 50.0, None]], [1.0, 8.0])
    found = problems([replace(recording, name="<b>&")], list(Scenario), [1.5, 3.0])
    results = [run(p, name, s, Setting()) for p in found for name in ("heterbo", "heterbo+guard") for s in range(2)]
    results += [replace(r, method="rival+guard", ratio=None, chosen=None) for r in results[:6]]
    shown = traces(found, results, summarise(results))
    html = page(contest_of(results, traces=tuple(shown), crashes=("a <crash>",)))
    parser = Wellformed()
    parser.feed(html)
    assert parser.open == []
    for drawn in re.findall(r"<svg.*?</svg>", html, re.S):
        ElementTree.fromstring(drawn)
    assert "<b>&" not in html
    assert not re.search(r"<script|<link|@import|url\(|src=", html)
    assert set(re.findall(r'https?://[^"]+', html)) <= {"http://www.w3.org/2000/svg"}
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for word in ("fastest-within-budget, limit x1.5", "heterbo", "Seeds", "0.1.0", "a &lt;crash&gt;", "rival"):
        assert word in html


def test_the_page_of_a_large_contest_stays_under_a_megabyte():
    rng = np.random.default_rng(0)
    scenarios = [("fastest", None), *product(("cheapest-by-deadline", "fastest-within-budget"), (1.5, 3.0))]
    names = [
        f"{name}{form}" for name in ["heterbo", *(f"some-method-{i}" for i in range(29))] for form in ("", "+guard")
    ]
    results = [
        replace(
            result(name, float(ratio), recording=f"some-recording-{i}", seed=seed),
            scenario=scenario,
            limit_factor=factor,
        )
        for name, i, (scenario, factor) in product(names, range(17), scenarios)
        for seed, ratio in enumerate(1 + rng.gamma(1.0, 0.4, 4))
    ]
    # Traces are a handful however large the contest is: a hundred kilobytes are left for them.
    assert len(page(contest_of(results)).encode()) < 900_000


def test_the_command_writes_page_and_journal_and_says_what_it_skipped(mlcd, recording: Path, tmp_path: Path):
    asked = ["bench", "train", recording, "--scenario", "fastest", "--method", "heterbo,heterbo+guard", "--seeds", "2"]
    more = ["--hours", "1,4", "--failures", "0.1", "--processes", "1", "--resume", tmp_path / "r.jsonl", "-o", "json"]
    once = mlcd(*asked, *more, "--html", tmp_path / "page.html")
    assert once.code == 0
    runs = once.document["runs"]
    assert [r["recording"] for r in runs[::4]] == ["tiny@1h", "tiny@4h"]
    assert {r["method"] for r in runs} == {"heterbo", "heterbo+guard"}
    assert "Methods against an oracle" in (tmp_path / "page.html").read_text()
    before = (tmp_path / "r.jsonl").read_text()
    assert len(before.splitlines()) == len(runs) == 8
    again = mlcd(*asked, *more)
    assert again.document == once.document
    assert (tmp_path / "r.jsonl").read_text() == before


@pytest.mark.parametrize(("hours", "told"), [("4,x", "expected numbers, such as 1,4,20"), ("0", "0.01 or more")])
def test_invalid_hours_are_refused(mlcd, recording: Path, hours: str, told: str):
    assert told in mlcd("bench", "train", recording, "--hours", hours).complaint


def test_a_page_that_cannot_be_written_is_reported_before_any_run(mlcd, recording: Path, tmp_path: Path):
    assert "no/page.html" in mlcd("bench", "train", recording, "--html", tmp_path / "no" / "page.html").complaint


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(1, 50), (0.0001, 0.0009), (3.0, 3.3), (1, 1e9), (7, 7)])
def test_ticks_are_few_and_inside(low: float, high: float, log: bool) -> None:
    ticks = Scale(low, high, 0, 100, log).ticks(6)
    assert 1 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)
