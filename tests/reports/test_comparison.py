"""Runs side by side: what they share, what differs, and what must not be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mlcd_fixtures.api import TRAIN, fill

from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text
from mlcd.reports.comparison import Comparison, compare
from mlcd.reports.comparison.jobs import keys_of
from mlcd.reports.story import Story
from mlcd.reports.view.summary import summary_of

EXAMPLES = Path(__file__).parents[2] / "mlcd" / "service" / "web" / "examples"
EVERY_KIND = ("demo-1", "elastic-1", "net-a-1", "tuned-1", "trained-1")
Compare = Callable[..., Comparison]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compare]:
    """Compares runs of one ledger, which has one of every kind, and three searches of one job: other-5, -6, -7."""
    home = tmp_path_factory.mktemp("compared")
    with closing(Ledger(home / "ledger.db")) as ledger:
        kinds = {kind: (EXAMPLES / f"{kind}.yaml").read_text() for kind in ("scale", "tune", "functions")}
        fill(ledger, home / "recordings", kinds)
        for change in (("", ""), ("1..4", "1..8"), ("$60", "$90\n  goal: cheapest")):
            start(job_from_text("train", TRAIN.replace(*change), {}), ledger).search()

        def these(*runs: str) -> Comparison:
            found = []
            for run in runs:
                lines = ledger.lines(run)
                story = Story.of(lines)
                found.append((summary_of(run, lines[0].written_at, story.account, driven=False), story))
            return compare(found)

        yield these


def cells(comparison: Comparison, name: str) -> list[str]:
    (row,) = [row for section in comparison.sections for row in section.rows if row.name == name]
    return [cell.words for cell in row.cells]


def test_only_the_keys_that_differ_differ_and_they_come_first(compared: Compare) -> None:
    found = compared("demo-5", "demo-6", "demo-7")
    differing = {row.name: [cell.words for cell in row.cells] for row in found.job.rows if row.differs}
    assert differing == {
        "budget": ["$60.00", "$60.00", "$90.00"],
        "goal": ["fastest", "fastest", "cheapest"],
        "search.max_probe": ["$9.00", "$9.00", "$13.50"],
        "search.nodes": ["1..4", "1..8", "1..4"],
    }
    flags = [row.differs for row in found.job.rows]
    assert flags == sorted(flags, reverse=True)
    assert not any(row.differs for row in compared("demo-5", "demo-5").job.rows)


def test_costs_are_those_of_the_ledger_and_split_into_probes_and_the_job_itself(compared: Compare) -> None:
    found = compared(*EVERY_KIND)
    for run in found.runs:
        assert run.probing_usd + run.final_usd == pytest.approx(run.summary.spent_usd)
    assert all(len(row.cells) == len(EVERY_KIND) for section in found.sections for row in section.rows)
    assert cells(found, "Total spent") == [f"${run.summary.spent_usd:,.2f}" for run in found.runs]


def test_a_path_only_gets_better_and_ends_with_what_was_spent(compared: Compare) -> None:
    found = compared("demo-5", "demo-6", *EVERY_KIND)
    assert found.paths is not None
    assert any(run.path for run in found.runs)
    for run in found.runs:
        values, spent = [point.value for point in run.path], [point.usd for point in run.path]
        assert values == sorted(set(values), reverse=found.paths.lower_is_better)
        assert spent == sorted(spent)
        assert all(usd <= run.summary.spent_usd + 1e-9 for usd in spent)


@pytest.mark.parametrize(
    ("runs", "name"),
    [
        (("demo-5", "demo-6"), "time to finish"),
        (("demo-5", "demo-7"), "time to finish"),
        (("demo-7", "demo-7"), "cost to finish"),
        (("tuned-1", "trained-1"), "loss"),
        (("net-a-1", "net-a-1"), "requests/s for $1 an hour"),
        (("demo-1", "net-a-1"), None),
    ],
)
def test_the_best_so_far_is_told_by_what_they_share(compared: Compare, runs: tuple[str, ...], name: str | None) -> None:
    found = compared(*runs)
    assert (found.paths.name if found.paths is not None else None) == name
    assert all(bool(run.path) == (name is not None) for run in found.runs)


def test_what_cannot_be_compared_is_said(compared: Compare) -> None:
    notes = " ".join(compared(*EVERY_KIND).notes)
    assert "The runs are of different kinds (functions, scale, serve, train, tune)" in notes
    assert re.search("The chart shows .+, which these runs do not have: .*net-a-1", notes)
    assert "The jobs have different amounts of work" in notes
    assert compared("demo-5", "demo-6").notes == []
    stopped = compared("demo-5", "demo-2")
    assert stopped.notes == ["Not decided yet, so their figures are not final: demo-2."]
    assert (stopped.runs[1].certified, stopped.runs[1].total_usd) == (None, None)


def test_what_was_probed_stands_in_one_row_for_all_runs(compared: Compare) -> None:
    found = compared("demo-1", "demo-5", "demo-6")
    labels = [row.name for row in found.probed.rows]
    assert len(labels) == len(set(labels))
    tried = [sum(cell.words != "–" for cell in row.cells) for row in found.probed.rows]
    assert tried == sorted(tried, reverse=True)
    chosen = [cell for row in found.probed.rows for cell in row.cells if cell.note.startswith("chosen")]
    assert len(chosen) == 3


def test_counts_are_shown_as_people_write_them_and_never_rounded(tmp_path: Path) -> None:
    job = TRAIN.replace("25M", "25.6M").replace("12G", "12.3G")
    other = job.replace("25.6M", "25557032")
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        runs = [start(job_from_text("train", text, {}), ledger) for text in (job, other)]
        keys = [keys_of(Story.of(ledger.lines(run.name)).started) for run in runs]
    assert [each["parameters"] for each in keys] == ["25.6M", "25,557,032"]
    assert keys[0]["flops_per_sample"] == "12.3G"
