"""Progress is parsed from output in any pieces, between anything else that a framework prints."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.frameworks import ProgressReader
from mlcd.clouds.frameworks.reports import PATTERN_RESTARTED, TRACKER_RESTARTED
from mlcd.core.errors import UserError
from mlcd.core.job import Hints, Job
from mlcd.core.measurement import Sample

STEPS = Job("job", 1_000.0, hints=Hints(global_batch=32), report=r"step (?P<step>\d+)")
SAMPLES = Job("job", 1_000.0, report=r"(?P<samples>[\d,.a-z]+) samples")


def told(job: Job, *pieces: str, every_s: float = 1.0) -> list[Sample]:
    reader = ProgressReader(job)
    return [sample for i, piece in enumerate(pieces, start=1) for sample in reader.feed(piece, i * every_s)]


def line(at_s: float, samples: float, saved: float = 0) -> str:
    return f"@mlcd t={at_s:.4f} samples={samples:.12g} saved={saved:.12g}\n"


def test_the_trackers_timestamp_counts_and_not_the_time_of_reading():
    found = told(STEPS, line(0.5, 10), line(1.0, 20) + line(1.5, 30, 20))
    assert found == [Sample(1.0, 10), Sample(1.5, 20), Sample(2.0, 30, 20)]


def test_of_lines_read_together_the_newest_gives_the_clock_offset():
    found = told(STEPS, line(0.5, 10) + line(60.5, 20) + line(90.5, 30), line(91.5, 40), every_s=100.0)
    assert found == [Sample(10.0, 10), Sample(70.0, 20), Sample(100.0, 30), Sample(101.0, 40)]


def test_a_line_may_arrive_in_pieces():
    whole = line(1.0, 256)
    assert told(STEPS, whole[:9], whole[9:20], whole[20:-1]) == []
    assert [s.samples for s in told(STEPS, whole[:9], whole[9:20], whole[20:-1], "\n")] == [256]


@pytest.mark.parametrize(
    "around", ["[default0]:{}", "[rank0]: {}", "\x1b[0m{}", "epoch 1:  50%|###   | 5/10{}", "(worker pid=7) {}"]
)
def test_text_before_a_report_on_its_line_is_ignored(around: str):
    assert [s.samples for s in told(STEPS, around.format(line(1.0, 64)))] == [64]


def test_a_progress_bar_ends_its_lines_with_a_carriage_return():
    found = told(STEPS, "\rstep 1 of 9", "\rstep 2 of 9", "\rstep 3 of 9\r\n", "done\n")
    assert found == [Sample(2.0, 32), Sample(3.0, 96)]


def test_a_pattern_counts_steps_of_one_batch_or_samples():
    assert told(STEPS, "step 10 loss 0.5\n", "nothing\n", "step 20 loss 0.4\n") == [Sample(1.0, 320), Sample(3.0, 640)]
    assert told(SAMPLES, "64 samples\n", "1,280 samples\n", "1.5e3 samples\n") == [
        Sample(1.0, 64),
        Sample(2.0, 1_280),
        Sample(3.0, 1_500),
    ]


def test_without_a_batch_a_step_is_one_sample():
    assert told(Job("job", 10.0, report=r"step (?P<step>\d+)"), "step 7\n") == [Sample(1.0, 7)]


def test_a_pattern_may_match_the_end_of_a_line():
    job = Job("job", 10.0, report=r"^step (?P<step>\d+)$")
    assert [s.samples for s in told(job, "step 1\r\n", "step 2\n", "step 3\r", "")] == [1, 2, 3]


def test_of_lines_read_together_the_last_one_counts():
    assert told(STEPS, "step 1\nstep 2\nstep 3\n", "step 4\nstep 5\n") == [Sample(1.0, 96), Sample(2.0, 160)]


@pytest.mark.parametrize(
    "written", ["nan samples\n", "inf samples\n", "many samples\n", "1.2.3 samples\n", ", samples\n"]
)
def test_invalid_numbers_are_skipped(written: str):
    assert told(SAMPLES, written, "64 samples\n") == [Sample(2.0, 64)]


def test_a_group_without_a_match_is_skipped():
    job = Job("job", 10.0, report=r"done(?: (?P<samples>\d+))?")
    assert told(job, "done\n", "done 5\n") == [Sample(2.0, 5)]


def test_a_broken_tracker_line_is_skipped():
    assert told(STEPS, "@mlcd t=1.2.3 samples=1e+e saved=0\n" + "@mlcd t=1.0@mlcd" + line(1.0, 8)[5:]) == [
        Sample(1.0, 8)
    ]


def test_times_and_samples_never_decrease():
    found = told(STEPS, line(1, 10) + line(2, 20), line(1.5, 30) + line(3, 15) + line(4, 20) + line(5, 40))
    assert [sample.samples for sample in found] == [10, 20, 20, 40]


def test_output_without_a_line_end_is_kept_only_in_part():
    reader = ProgressReader(STEPS)
    for _ in range(50):
        reader.feed("." * 5_000, 1.0)
    assert len(reader._rest) <= 10_000
    assert [s.samples for s in reader.feed("\n" + line(1.0, 8), 2.0)] == [8]


STEPS_OF_EPOCHS = Job(
    "job", 150_000.0, hints=Hints(global_batch=128), dataset_samples=50_000.0,
    report=r"[Ee]poch (?P<epoch>\d+) step (?P<step>\d+)",
)  # fmt: skip
OF_STEPS = Job("job", 1e6, hints=Hints(global_batch=10), report=r"(?P<epoch>\d+) \[(?P<step>\d+)/(?P<steps>\d+)\]")


@pytest.mark.parametrize("first", [0, 1])
def test_a_step_that_restarts_in_each_epoch_is_counted_over_epochs(first: int):
    log = [f"epoch {first + epoch} step {step} loss 0.1\n" for epoch in range(3) for step in (100, 200, 391)]
    found = [sample.samples for sample in told(STEPS_OF_EPOCHS, *log)]
    assert found == [50_000 * epoch + done for epoch in range(3) for done in (12_800, 25_600, 50_000)]


def test_the_length_of_an_epoch_may_be_in_each_line():
    log = [f"{epoch} [{step}/40]\n" for epoch in (1, 2) for step in (0, 20, 40)]
    assert [sample.samples for sample in told(OF_STEPS, *log)] == [0, 200, 400, 400, 600, 800]
    known = Job("job", 1e6, report=OF_STEPS.report, dataset_samples=395.0)
    assert [sample.samples for sample in told(known, "1 [20/40]\n", "1 [40/40]\n", "2 [20/40]\n")] == [
        197.5,
        395,
        592.5,
    ]


def test_a_job_that_continues_from_its_own_checkpoint_reports_its_total_position():
    assert [sample.samples for sample in told(STEPS_OF_EPOCHS, "epoch 3 step 10\n")] == [2 * 50_000 + 1_280]


def test_a_pattern_with_only_epochs_counts_completed_epochs():
    job = Job("job", 1e6, report=r"'epoch': (?P<epoch>[\d.]+)", dataset_samples=1_000.0)
    found = told(job, "{'loss': 0.5, 'epoch': 0.5}\n", "{'loss': 0.4, 'epoch': 2.25}\n")
    assert [sample.samples for sample in found] == [500, 2_250]


def test_a_restarted_step_without_an_epoch_is_reported_once_with_advice():
    log = [f"step {step}\n" for _ in range(3) for step in range(10, 60, 10)]
    found = told(STEPS, *log)
    remarks = [(sample.elapsed_s, sample.samples, sample.remark) for sample in found if sample.remark]
    assert remarks[:1] == [(8.0, 50 * 32, PATTERN_RESTARTED)], "three reports that go up from below are no stray line"
    assert len(remarks) == 2, "once for each time that it starts again"
    assert "(?P<epoch>" in PATTERN_RESTARTED


def test_a_few_smaller_counts_are_skipped():
    found = told(STEPS, *(f"step {step}\n" for step in [10, 20, 5, 6, 30, 40, 7, 7, 7, 50, 1, 2, 60]))
    assert [sample.remark for sample in found] == [""] * 6


def test_a_script_that_restarts_within_a_launch_is_reported():
    pieces = ["".join(line(t, 10 * t) for t in range(1, 9)), "".join(line(t, 10 * t) for t in range(1, 4))]
    *_, last = told(STEPS, *pieces, every_s=10.0)
    assert last.remark == TRACKER_RESTARTED


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*a){25}$", r"(\w+\s*)+:"])
def test_no_pattern_takes_long_on_any_line(pattern: str):
    """Python's own engine takes longer than the universe lasts on the first one; nothing can stop it then."""
    job = Job("job", 10.0, report=f"{pattern}(?P<step>1)")
    began_s = time.process_time()
    for hostile in ("a" * 50_000 + "b", "a" * 50_000, "a " * 25_000 + "!"):
        assert told(job, hostile + "\n") == []
    assert time.process_time() - began_s < 5


def test_a_stored_pattern_that_is_no_longer_allowed_is_one_line():
    with pytest.raises(UserError, match="lookahead and lookbehind are not supported"):
        ProgressReader(Job("job", 10.0, report=r"(?<=step )(?P<step>\d+)"))


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
def test_output_in_any_pieces_gives_the_same_samples(output: tuple[str, list[str]]):
    text, pieces = output
    assert "".join(pieces) == text
    whole, reader = ProgressReader(STEPS).feed(text, 7.0), ProgressReader(STEPS)
    found = [sample for piece in pieces for sample in reader.feed(piece, 7.0)]
    assert [(each.samples, each.saved) for each in found] == [(each.samples, each.saved) for each in whole]
    apart = [each.elapsed_s - found[0].elapsed_s for each in found]
    assert apart == pytest.approx([each.elapsed_s - whole[0].elapsed_s for each in whole])
    assert len(whole) == text.count("@mlcd ")
