"""Progress is read from output as it comes, in whatever pieces, from whatever a framework puts around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.job import Hints, Job
from mlcd.measurement import Sample
from mlcd.platforms import Reader

STEPS = Job("job", 1_000.0, hints=Hints(global_batch=32), report=r"step (?P<step>\d+)")
SAMPLES = Job("job", 1_000.0, report=r"(?P<samples>[\d,.a-z]+) samples")


def told(job: Job, *pieces: str, every_s: float = 1.0) -> list[Sample]:
    reader = Reader(job)
    return [sample for i, piece in enumerate(pieces, start=1) for sample in reader.feed(piece, i * every_s)]


def line(at_s: float, samples: float, saved: float = 0) -> str:
    return f"@mlcd t={at_s:.4f} samples={samples:.12g} saved={saved:.12g}\n"


def test_the_trackers_own_time_counts_not_the_moment_of_reading():
    found = told(STEPS, line(0.5, 10), line(1.0, 20) + line(1.5, 30, 20))
    assert found == [Sample(1.0, 10), Sample(1.5, 20), Sample(2.0, 30, 20)]


def test_a_line_may_come_in_pieces():
    whole = line(1.0, 256)
    assert told(STEPS, whole[:9], whole[9:20], whole[20:-1]) == []
    assert [s.samples for s in told(STEPS, whole[:9], whole[9:20], whole[20:-1], "\n")] == [256]


@pytest.mark.parametrize(
    "around", ["[default0]:{}", "[rank0]: {}", "\x1b[0m{}", "epoch 1:  50%|###   | 5/10{}", "(worker pid=7) {}"]
)
def test_what_launchers_and_progress_bars_write_before_it_does_not_matter(around: str):
    assert [s.samples for s in told(STEPS, around.format(line(1.0, 64)))] == [64]


def test_a_progress_bar_ends_its_lines_with_a_carriage_return():
    found = told(STEPS, "\rstep 1 of 9", "\rstep 2 of 9", "\rstep 3 of 9\r\n", "done\n")
    assert found == [Sample(2.0, 32), Sample(3.0, 96)]


def test_a_pattern_tells_steps_of_one_batch_or_samples():
    assert told(STEPS, "step 10 loss 0.5\n", "nothing\n", "step 20 loss 0.4\n") == [Sample(1.0, 320), Sample(3.0, 640)]
    assert told(SAMPLES, "64 samples\n", "1,280 samples\n", "1.5e3 samples\n") == [
        Sample(1.0, 64),
        Sample(2.0, 1_280),
        Sample(3.0, 1_500),
    ]


def test_without_a_batch_a_step_is_one_sample():
    assert told(Job("job", 10.0, report=r"step (?P<step>\d+)"), "step 7\n") == [Sample(1.0, 7)]


def test_a_pattern_may_ask_for_the_end_of_a_line():
    job = Job("job", 10.0, report=r"^step (?P<step>\d+)$")
    assert [s.samples for s in told(job, "step 1\r\n", "step 2\n", "step 3\r", "")] == [1, 2, 3]


def test_of_lines_that_are_read_at_once_the_last_one_counts():
    assert told(STEPS, "step 1\nstep 2\nstep 3\n", "step 4\nstep 5\n") == [Sample(1.0, 96), Sample(2.0, 160)]


@pytest.mark.parametrize(
    "written", ["nan samples\n", "inf samples\n", "many samples\n", "1.2.3 samples\n", ", samples\n"]
)
def test_what_is_no_number_is_passed_over(written: str):
    assert told(SAMPLES, written, "64 samples\n") == [Sample(2.0, 64)]


def test_a_group_that_took_no_part_is_passed_over():
    job = Job("job", 10.0, report=r"done(?: (?P<samples>\d+))?")
    assert told(job, "done\n", "done 5\n") == [Sample(2.0, 5)]


def test_a_broken_line_of_the_tracker_is_passed_over():
    assert told(STEPS, "@mlcd t=1.2.3 samples=1e+e saved=0\n" + "@mlcd t=1.0@mlcd" + line(1.0, 8)[5:]) == [
        Sample(1.0, 8)
    ]


def test_time_and_work_only_go_forward():
    found = told(STEPS, line(1, 10) + line(2, 20), line(1.5, 30) + line(3, 15) + line(4, 20) + line(5, 40))
    assert [sample.samples for sample in found] == [10, 20, 20, 40]


def test_output_without_an_end_of_line_is_not_kept_for_ever():
    reader = Reader(STEPS)
    for _ in range(50):
        reader.feed("." * 5_000, 1.0)
    assert len(reader._rest) <= 10_000
    assert [s.samples for s in reader.feed("\n" + line(1.0, 8), 2.0)] == [8]


NOISE = st.text(alphabet="ab 1\r\n\x0b\x0c\x1c\x85\u2028@", max_size=12)
REPORTS = st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 500)), min_size=1, max_size=12)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[str, list[str]]:
    """An output with a tracker's lines in it, and the same cut into pieces."""
    text, ticks, samples = "", 0, 0
    for more_ticks, more_samples in draw(REPORTS):
        ticks, samples = ticks + more_ticks, samples + more_samples
        text += draw(NOISE).replace("@", "") + line(ticks / 10_000, samples, samples // 2) + draw(NOISE)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=20)))
    return text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(outputs())
def test_any_pieces_of_an_output_give_the_same_samples(output: tuple[str, list[str]]):
    text, pieces = output
    assert "".join(pieces) == text
    whole, reader = Reader(STEPS).feed(text, 7.0), Reader(STEPS)
    assert [sample for piece in pieces for sample in reader.feed(piece, 7.0)] == whole
    assert len(whole) == text.count("@mlcd ")
