"""Where a live launch stands: shares and times that agree with its reports, the same for a terminal and for a page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Sample
from mlcd.reports.launch_progress import Headway, ProgressMeter, from_json, to_json
from mlcd.reports.progress import ProgressLine

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
JOB = Job("demo", 1_000.0)
PLACE = Configuration(Offer("node", 3.6, 4, 16), 2)
RUN = Launch("demo-1-1", PLACE, Purpose.RUN, 1_000.0, None, 1)
PROBE = replace(RUN, label="demo-1-2", purpose=Purpose.PROBE, lifetime_s=60.0)


@st.composite
def reports(draw: st.DrawFn) -> list[Sample]:
    steps = draw(st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 100.0)), min_size=1, max_size=20))
    found, elapsed_s, samples = [], 5.0, 0.0
    for took_s, did in steps:
        elapsed_s, samples = elapsed_s + took_s, samples + did
        found.append(Sample(elapsed_s, samples))
    return found


def test_a_run_is_told_by_its_share_its_rate_its_price_and_what_is_left() -> None:
    meter = ProgressMeter(lambda: NOW)
    meter(JOB, RUN, Sample(10.0, 0.0))
    told = meter(JOB, RUN, Sample(20.0, 250.0))
    assert (told.share, told.rate, told.unit, told.left_s, told.at) == (0.25, 25.0, "samples/s", 30.0, NOW)
    assert told.usd == pytest.approx(PLACE.usd(20.0))
    assert told.words == "2 x node  25 samples/s, 20 s, $0.04  25% done, about 30 s left"


def test_reports_that_come_almost_at_once_give_no_rate() -> None:
    meter = ProgressMeter(lambda: NOW)
    meter(JOB, RUN, Sample(10.0, 0.0))
    told = meter(JOB, RUN, Sample(10.0001, 750.0))
    assert (told.rate, told.left_s) == (None, None)
    assert told.words.endswith("75% done, about ? left")


def test_a_probe_ends_when_enough_is_known_so_it_has_no_share() -> None:
    meter = ProgressMeter()
    meter(JOB, PROBE, Sample(10.0, 0.0))
    told = meter(JOB, PROBE, Sample(20.0, 250.0))
    assert (told.share, told.left_s, told.rate) == (None, None, 25.0)
    assert told.words.endswith("  probing")


@given(reports(), st.sampled_from([RUN, PROBE]))
def test_whatever_a_job_reports_shares_are_shares_and_nothing_is_negative(told: list[Sample], launch: Launch) -> None:
    meter = ProgressMeter()
    found = [meter(JOB, launch, sample) for sample in told]
    for sample, each in zip(told, found, strict=True):
        assert each.share is None or each.share == sample.samples / RUN.samples
        assert each.share is None or each.share <= 1 or (each.left_s is None and "stated work" in each.words)
        assert all(value is None or value >= 0 for value in (each.rate, each.left_s, each.usd, each.elapsed_s))
        assert each.usd == PLACE.usd(sample.elapsed_s)
    read = from_json(to_json(found))
    assert read == sorted(found, key=lambda each: each.label)


@given(reports(), reports())
def test_launches_under_way_together_are_each_told_as_if_alone(one: list[Sample], other: list[Sample]) -> None:
    both, alone = ProgressMeter(lambda: NOW), ProgressMeter(lambda: NOW)
    told = [(RUN, sample) for sample in one] + [(PROBE, sample) for sample in other]
    told.sort(key=lambda each: each[1].elapsed_s)
    mixed = [both(JOB, launch, sample) for launch, sample in told]
    assert [each for each in mixed if each.label == RUN.label] == [alone(JOB, RUN, sample) for sample in one]


@pytest.mark.parametrize("text", ["", "{", "{}", '[{"label": "x"}]', "[1]", "null"])
def test_what_another_version_has_written_is_nothing(text: str) -> None:
    assert from_json(text) == []


def lines(*shares: float | None) -> str:
    console = Console(file=StringIO(), width=100)
    line = ProgressLine(console)
    for share in shares:
        line.show_newest([] if share is None else [standing(share)])
    return console.file.getvalue()  # type: ignore[attr-defined]


def standing(share: float) -> Headway:
    return Headway("demo-1-1", Purpose.RUN, "2 x node", NOW, 9.0, 0.01, f"[b]{share:.0%}", share)


def test_a_log_file_gets_a_line_for_every_tenth_whoever_runs_the_job() -> None:
    assert lines(0.01, 0.11, 0.12, 0.35, None, 0.39, 0.41, 1.0).split() == ["[b]11%", "[b]35%", "[b]41%"]


def test_a_job_that_goes_on_beyond_its_work_does_not_go_quiet() -> None:
    assert lines(0.95, 1.02, 1.3, 1.55, 1.6, 2.4, 4.1).split() == ["[b]95%", "[b]155%", "[b]240%", "[b]410%"]


def test_the_time_that_is_left_follows_the_rate_of_the_last_minutes() -> None:
    """Nine hours at 100 samples/s, then at 10: what is left takes ten times as long, whatever the average says."""
    meter, run = ProgressMeter(lambda: NOW), replace(RUN, samples=3_600_000.0)
    done, headway = 0.0, None
    for minute in range(9 * 60 + 10):
        headway = meter(JOB, run, Sample(60.0 * minute, done))
        done += 60 * (100.0 if minute < 9 * 60 else 10.0)
    assert headway is not None
    assert headway.rate == pytest.approx(10.0)
    assert headway.left_s == pytest.approx((run.samples - 100 * 9 * 3_600 - 10 * 9 * 60) / 10.0)


def test_a_terminal_gets_one_line_that_changes_and_goes() -> None:
    console = Console(file=StringIO(), width=100, force_terminal=True, legacy_windows=False)
    line = ProgressLine(console)
    line.show_newest([standing(0.2), replace(standing(0.1), at=NOW.replace(hour=8), label="older")])
    line.show_newest([])
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[b]20%" in said, "the newest, and as it is: no markup"
    assert "[b]10%" not in said
    line.close()
