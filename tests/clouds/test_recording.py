from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from mlcd.clouds.recording import load_recording
from mlcd.core.configuration import ProbeTime
from mlcd.core.errors import RecordingError
from mlcd.core.measurement import Outcome

ROOT = Path(__file__).parents[2]
Change = Callable[[str], str]


def test_a_recording_is_read_whole(recording: Path) -> None:
    recording_read = load_recording(recording)
    assert (recording_read.name, recording_read.work_samples, recording_read.source) == ("tiny", 2_000_000, "made up")
    assert recording_read.probe_time == ProbeTime(300, 30)
    assert len(recording_read.points) == len(recording_read.space) == 11
    rates = {(c.offer.instance_type, c.nodes): p.samples_per_s for c, p in recording_read.points.items()}
    assert rates["gpu", 4] == 640
    assert rates["big", 1] is None
    gpu = next(offer for offer in recording_read.space.offers if offer.instance_type == "gpu")
    assert (gpu.usd_per_hour, gpu.accelerator, gpu.accelerators, gpu.network_gbps) == (3.0, "V100", 1, 10)


def test_the_space_keeps_the_order_of_the_file_and_sorts_the_nodes(recording: Path) -> None:
    points = recording / "points.csv"
    header, *rows = points.read_text().splitlines()
    points.write_text("\n".join([header, *reversed(rows)]))
    space = load_recording(recording).space
    assert [offer.instance_type for offer in space.offers] == ["big", "gpu", "small"]
    assert [choice.nodes for choice in space.choices] == [(1, 2, 4), (1, 2, 4, 8), (1, 2, 4, 8)]


def test_a_failed_row_needs_no_rate(recording: Path) -> None:
    outcomes = [point.outcome for point in load_recording(recording).points.values()]
    assert outcomes.count(Outcome.OUT_OF_MEMORY) == 1


def test_a_spreadsheets_csv_is_read(recording: Path) -> None:
    points = recording / "points.csv"
    points.write_bytes(b"\xef\xbb\xbf" + points.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    assert len(load_recording(recording).points) == 11


def test_a_recording_without_a_name_has_its_folders_name(recording: Path) -> None:
    about = recording / "recording.yaml"
    about.write_text(about.read_text().replace("name: tiny\n", "").replace("2000000", "2e6"))
    assert load_recording(recording).name == "tiny"
    assert load_recording(recording).work_samples == 2_000_000


BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefgh"))
"""A few lines that, written out, are millions of values."""


def first_row(old: str, new: str) -> Change:
    return lambda text: text.replace(old, new, 1)


@pytest.mark.parametrize(
    "change, where, message",
    [
        (first_row("outcome", "result"), "1", "missing column outcome; expected instance_type,nodes"),
        (lambda text: "", "1", "missing column instance_type"),
        (first_row("20.0,ok", "nan,ok"), "2", "samples_per_s 'nan': expected a finite number"),
        (first_row("20.0,ok", "inf,ok"), "2", "samples_per_s 'inf': expected a finite number"),
        (first_row("20.0,ok", "-1,ok"), "2", "samples_per_s '-1': must be more than zero"),
        (first_row("20.0,ok", "0,ok"), "2", "samples_per_s '0': must be more than zero"),
        (first_row("20.0,ok", ",ok"), "2", "samples_per_s '': expected a number"),
        (first_row("20.0,ok", "20.0,fine"), "2", "outcome 'fine': expected ok, out_of_memory, failed"),
        (first_row("small,2,", "small,1,"), "3", "duplicate row: 1 x small is also in line 2"),
        (first_row("small,2,", "small,two,"), "3", "nodes 'two': expected a number"),
        (first_row("small,2,", "small,0,"), "3", "nodes '0': must be more than zero"),
        (first_row("small,2,", "small,1.5,"), "3", "nodes '1.5': expected a whole number"),
        (first_row("small,2,", ",2,"), "3", "instance_type is empty"),
        (first_row("small,2,0.4", "small,2,0.5"), "3", "small has other facts than in its first row"),
        (first_row("small,1,0.4", "small,1,0"), "2", "usd_per_hour '0': must be more than zero"),
        (
            first_row("ok,4,16", "ok,0,16"),
            "2",
            "vcpus '0': must be more than zero where no accelerator's rate is given",
        ),
        (first_row("V100,1,", "V100,1.5,"), "6", "accelerators '1.5': expected a whole number"),
        (first_row(",5\n", ",5,6\n"), "2", "12 cells, but the header has 11 columns"),
        (first_row("ok,4,16,,,,5\n", "ok,4,16\n"), "2", "7 cells, but the header has 11 columns"),
    ],
)
def test_an_error_in_a_row_names_its_line(recording: Path, change: Change, where: str, message: str) -> None:
    points = recording / "points.csv"
    points.write_text(change(points.read_text()))
    with pytest.raises(RecordingError) as refused:
        load_recording(recording)
    assert str(refused.value).startswith(f"{points}:{where}: ")
    assert message in str(refused.value)


def test_a_recording_without_a_usable_row_is_refused(recording: Path) -> None:
    points = recording / "points.csv"
    points.write_text(points.read_text().replace(",ok,", ",failed,"))
    with pytest.raises(RecordingError, match="no usable row: at least one must have the outcome ok"):
        load_recording(recording)


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b"\xff\xfe\x00", r"points\.csv: not readable as CSV: "),
        (b'"' + b"x" * 200_000, r"points\.csv:1: not a CSV line: "),
    ],
    ids=["not UTF-8", "not CSV"],
)
def test_points_that_are_not_csv_are_an_error(recording: Path, content: bytes, complaint: str) -> None:
    (recording / "points.csv").write_bytes(content)
    with pytest.raises(RecordingError, match=complaint):
        load_recording(recording)


@pytest.mark.parametrize("file", ["recording.yaml", "points.csv"])
def test_the_error_about_a_missing_file_says_what_a_recording_is(recording: Path, file: str) -> None:
    (recording / file).unlink()
    with pytest.raises(
        RecordingError, match=r"no such file; a recording is a folder with recording\.yaml and points\.csv"
    ):
        load_recording(recording)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda text: "", "expected keys such as `name: resnet50`"),
        (lambda text: "a: [", "recording.yaml:1: not readable as YAML: "),
        (lambda text: "a: \x00", "not readable as YAML: "),
        (lambda text: "[" * 5_000, ": nested too deeply to be read"),
        (lambda text: text + "a: 2001-99-99\nb: !!bool perhaps\nwork_samples: [1]", "work_samples: expected one value"),
        (lambda text: BOMB + "name: *h\n", "name: expected one value"),
        (first_row("work_samples: 2000000\n", ""), "'work_samples' is missing; add it"),
        (first_row("2000000", "many"), "work_samples 'many': expected a number"),
        (first_row("2000000", "true"), "work_samples 'true': expected a number"),
        (first_row("2000000", "1" + "0" * 400), "expected a finite number"),
        (first_row("2000000", "1" + "0" * 5000), "expected a finite number"),
        (first_row("2000000", "0x" + "f" * 5000), "expected a number"),
        (first_row("2000000", "0"), "work_samples '0': must be more than zero"),
        (first_row("300", "-300"), "probe_base_s '-300': must be more than zero"),
        (first_row("source", "global_batch: lots\nsource"), "global_batch 'lots': expected a number"),
    ],
)
def test_an_error_in_the_description_names_its_key(recording: Path, change: Change, message: str) -> None:
    about = recording / "recording.yaml"
    about.write_text(change(about.read_text()))
    with pytest.raises(RecordingError) as refused:
        load_recording(recording)
    assert str(refused.value).startswith(str(about))
    assert message in str(refused.value)


@pytest.mark.parametrize("folder", sorted((ROOT / "examples" / "recordings").iterdir()), ids=lambda folder: folder.name)
def test_the_packaged_recordings_are_real_and_name_their_source(folder: Path) -> None:
    recording = load_recording(folder)
    assert len(recording.points) >= 32
    assert "mlcd record on local (live)" in recording.source
