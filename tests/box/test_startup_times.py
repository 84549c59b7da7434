"""Startup times of launches, and their parts."""

from __future__ import annotations

import json
import os

from mlcd_box.startup_times import StartupTime, startup_times, summary

TAGS = {"mlcd": "mlcd-ab12-play-1-1"}
EVENTS = [
    {"t": 1_010.0, "kind": "started", "id": "i-1", "tags": TAGS},
    {"t": 1_011.0, "kind": "started", "id": "i-2", "tags": TAGS},
    {"t": 1_014.0, "kind": "running", "id": "i-1"},
    {"t": 1_020.0, "kind": "running", "id": "i-2"},
    {"t": 5_000.0, "kind": "started", "id": "i-3", "tags": {"mlcd": "another"}},
]


def launched(folder, first_report_at: float | None):
    folder.mkdir(parents=True)
    (folder / "order.json").write_text(json.dumps({"cluster": "mlcd-ab12-play-1-1", "started_at": 1_000.0}))
    if first_report_at is not None:
        (folder / "first_report").write_text("{}")
        os.utime(folder / "first_report", (first_report_at, first_report_at))


def test_the_last_machine_that_runs_ends_the_boot(tmp_path):
    launched(tmp_path / "play-1-1", 1_060.0)
    assert list(startup_times(tmp_path, EVENTS)) == [StartupTime(10.0, 10.0, 40.0)]


def test_a_launch_that_never_reported_is_left_out(tmp_path):
    launched(tmp_path / "play-1-1", None)
    assert list(startup_times(tmp_path, EVENTS)) == []


def test_the_summary_has_medians():
    told = summary([StartupTime(1, 2, 3), StartupTime(3, 2, 1), StartupTime(10, 20, 30)])
    assert "3 launches: 6 to 60 s, median 6 s; of it SkyPilot's order 3 s, the machines' boot 2 s" in told
    assert summary([]) == ""
