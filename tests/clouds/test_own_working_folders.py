"""Each probe has a private working folder: it changes neither the user's folder nor the next launch."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import mlcd.clouds.local.workspace as workspace
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.local.workspace import shared_files_warning
from mlcd.clouds.node_types import load_local_types
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome

pytestmark = pytest.mark.live

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts overlays")
PROGRAM = """
import os, sys, mlcd_tracker
print("found", sorted(os.listdir(".")), open("../data/rows").read(), open("notes").read(), flush=True)
os.makedirs("out", exist_ok=True)
open("out/checkpoint-1", "w").write("of launch " + os.environ["MLCD_LAUNCH"])
open("notes", "a").write(", changed")
open(os.path.join(os.environ["MLCD_CHECKPOINT_DIR"], os.environ["MLCD_LAUNCH"]), "w").close()
mlcd_tracker.step({samples})
"""
WORK = 100.0
KEPT = {"0.log", "1.log", "order.json", "ended", "tracker", "usage.jsonl"}
"""The files that are left in the folder of an ended launch."""
Play = Callable[..., str]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The user's folder, with data next to it."""
    folder = tmp_path / "project"
    for each in (folder, tmp_path / "data"):
        each.mkdir()
    (tmp_path / "data" / "rows").write_text("rows")
    (folder / "notes").write_text("as I left them")
    return folder


@pytest.fixture(params=["overlay", "copy"])
def play(request: pytest.FixtureRequest, work: Path, tmp_path: Path) -> Play:
    """Runs a launch and returns its output. If the state folder is inside the user's folder, no overlay is possible."""
    if request.param == "overlay" and (why := why_not_isolated()) is not None:
        pytest.skip(why)
    home = work / ".mlcd" if request.param == "copy" else tmp_path / "home"
    types = load_local_types()
    backend = Local(home, WallClock(datetime.now(UTC)), isolated=request.param == "overlay")

    def play(ordinal: int, purpose: Purpose = Purpose.PROBE, samples: float = WORK / 2, nodes: int = 1) -> str:
        run = f"python3 - <<'PROGRAM'\n{PROGRAM.format(samples=samples)}\nPROGRAM"
        job = Job("demo", WORK, task={"run": run}, folder=str(work), checkpoints=True)
        configuration = Configuration(types.offers[0], nodes)
        order = Launch(f"{request.param}{os.getpid()}-1-{ordinal}", configuration, purpose, WORK, 40.0, ordinal)
        events = list(backend.run(job, order))
        assert isinstance(events[-1], Ended), events
        assert events[-1].outcome is Outcome.OK, events[-1]
        folder = home / "launches" / order.label
        assert {each.name for each in folder.iterdir()} <= KEPT
        return (folder / "0.log").read_text()

    return play


def test_each_probe_starts_with_the_users_folder_and_does_not_change_it(play: Play, work: Path) -> None:
    before = sorted(set(os.listdir(work)) | {".mlcd"})
    for ordinal in range(2):
        output = play(ordinal)
        assert "'out'" not in output
        assert "rows as I left them" in output
        assert ", changed" not in output
    assert sorted(set(os.listdir(work)) | {".mlcd"}) == before
    assert (work / "notes").read_text() == "as I left them"


def test_the_final_run_works_in_the_users_folder(play: Play, work: Path) -> None:
    play(0)
    assert "'out'" not in play(1, Purpose.RUN)
    assert "1-1" in (work / "out" / "checkpoint-1").read_text()
    assert (work / "notes").read_text() == "as I left them, changed"
    assert "'out'" in play(2, Purpose.RUN), "a run that continues finds its earlier files"


def test_files_of_a_probe_that_did_all_of_the_work_are_copied_back(play: Play, work: Path) -> None:
    play(0, samples=WORK)
    assert "1-0" in (work / "out" / "checkpoint-1").read_text()
    assert (work / "notes").read_text() == "as I left them, changed"


def test_nodes_of_a_launch_share_its_folder(play: Play, work: Path) -> None:
    play(0, nodes=2)
    assert not (work / "out").exists()


def test_large_entries_are_shared_with_a_warning(work: Path, tmp_path: Path) -> None:
    (work / "images").mkdir()
    with (work / "images" / "1").open("wb") as file:
        file.truncate(workspace.MAX_BYTES + 1)  # a sparse file, which takes no disk space
    home = work / ".mlcd"
    home.mkdir()
    place = workspace.private_workspace(work, tmp_path / "launch", home)
    assert (place.cwd / "images").is_symlink()
    assert not (place.cwd / "notes").is_symlink()
    shared = shared_files_warning(Job("demo", 1.0, folder=str(work)), home)
    assert shared == f"probes share images in {work}: too large to copy for each"


def test_a_folder_that_contains_mlcd_home_is_not_copied_into_itself(work: Path) -> None:
    launch = work / "launches" / "job-1"
    launch.mkdir(parents=True)
    place = workspace.Copy.create(work, launch, work)
    assert (place.cwd / "notes").read_text() == "as I left them"
    assert (place.cwd / "launches").is_symlink()


@AS_ROOT
def test_a_probe_sees_mounts_in_the_folder(work: Path, tmp_path: Path) -> None:
    points = [Path(line.split()[4]) for line in workspace.MOUNTS.read_text().splitlines()]
    inside = [str(each.relative_to("/dev")) for each in points if each.is_relative_to("/dev") and each != Path("/dev")]
    assert workspace._mounted_in(Path("/dev")) == sorted(set(inside))
    assert workspace._mounted_in(work) == []
    overlay = replace(workspace.Overlay(Path("/dev"), tmp_path))
    assert all(each in overlay.command_line("true", {}).command for each in inside)
