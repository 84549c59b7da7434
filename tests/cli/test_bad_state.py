"""A state file that cannot be used: one line, exit code 2, and nothing that was written is lost."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.database import engine
from mlcd.core.database.schema import FORMAT
from mlcd.core.exit_codes import ExitCode
from mlcd.core.home import home as home_folder

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

READING = [["runs"], ["show", "last"], ["ledger", "last"], ["report", "last"], ["what-if", "last"]]
WRITING = [["train", "job.yaml"], ["resume", "last"], ["launch", "last"]]


@pytest.fixture
def decided(mlcd: Mlcd, recorded_job: WriteJob, home: Path) -> Path:
    """A ledger with one run that is decided; its file."""
    assert mlcd("train", recorded_job(), "--decide-only").code == 0
    return home / "ledger.db"


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Mounts a small disk of its own as the state folder, and remounts it with other options."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = False

    def mount(options: str) -> Path:
        nonlocal mounted
        again = "remount," if mounted else ""
        command = ["mount", "-t", "tmpfs", "-o", again + options, "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount a small disk (root)")
        mounted = True
        monkeypatch.setenv("MLCD_HOME", str(folder / "state"))
        return folder / "state"

    yield mount
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("command", [*WRITING, ["runs"]], ids=lambda command: command[0])
def test_a_locked_ledger_is_told(
    mlcd: Mlcd, decided: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.0)
    before = decided.read_bytes()
    with closing(sqlite3.connect(decided, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        told = mlcd(*command).complaint
    assert told == f"mlcd: {decided}: locked by another process; try again when it is done"
    assert decided.read_bytes() == before
    assert mlcd("launch", "last").code == 0


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=lambda command: command[0])
def test_a_ledger_of_a_newer_version_is_told_and_left_alone(mlcd: Mlcd, decided: Path, command: list[str]) -> None:
    with closing(sqlite3.connect(decided)) as db:
        db.execute("PRAGMA user_version = 99")
    before = decided.read_bytes()
    told = mlcd(*command).complaint
    assert f"{decided}: written by a newer MLCD (format 99, this one reads {FORMAT}); upgrade with pip" in told
    assert decided.read_bytes() == before


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=lambda command: command[0])
@pytest.mark.parametrize("damage", ["random", "cut", "header", "text"])
def test_a_damaged_ledger_is_told_and_left_alone(mlcd: Mlcd, decided: Path, command: list[str], damage: str) -> None:
    good = decided.read_bytes()
    bad = {
        "random": random.Random(0).randbytes(8_192),
        "cut": good[: len(good) // 2],
        "header": good[:60],
        "text": b"dear diary, " * 100,
    }[damage]
    decided.write_bytes(bad)
    told = mlcd(*command).complaint
    assert str(decided) in told
    assert "restore" in told
    assert decided.read_bytes() == bad
    decided.write_bytes(good)
    assert mlcd("launch", "last").code == 0


def test_one_damaged_run_is_told_in_its_row_and_the_others_are_listed(
    mlcd: Mlcd, recorded_job: WriteJob, decided: Path
) -> None:
    assert mlcd("train", recorded_job(), "--decide-only").code == 0
    whole = mlcd("runs", "-o", "json").document["runs"]
    first, second = (each["run"] for each in whole)
    damage_run(decided, first)
    told = f"{decided}: damaged in run '{first}'; restore it from a copy"
    table, listed = mlcd("runs"), mlcd("runs", "-o", "json")
    assert f"mlcd: {told}" == table.complaint == listed.complaint
    assert re.search(rf"^{first} .* damaged: restore the ledger from a copy ", table.out, re.MULTILINE)
    assert re.search(rf"^{second} .* decided ", table.out, re.MULTILINE)
    assert listed.document["runs"] == [{"run": first, "status": "damaged", "because": told}, whole[1]]
    assert mlcd("show", "last").code == 0
    damage_run(decided, second)
    assert (mlcd("runs").complaint, mlcd("runs").out) == (f"mlcd: {told}", "")


def damage_run(ledger: Path, run: str) -> None:
    """With one more entry, which nobody can read."""
    with closing(sqlite3.connect(ledger)) as db, db:
        row = (run, "2026-01-01T00:00:00+00:00", 1.0, "settled", "{")
        db.execute("INSERT INTO entries (run, written_at, elapsed_s, kind, body) VALUES (?, ?, ?, ?, ?)", row)


@pytest.mark.parametrize("command", [["runs"], ["train", "job.yaml"]], ids=lambda command: command[0])
def test_a_file_of_another_program_is_told_and_left_alone(
    mlcd: Mlcd, home: Path, write_job: WriteJob, command: list[str]
) -> None:
    write_job()
    home.mkdir()
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        db.execute("CREATE TABLE songs (title TEXT)")
    before = (home / "ledger.db").read_bytes()
    assert "a SQLite file, but not a ledger; move it away, or choose another folder" in mlcd(*command).complaint
    assert (home / "ledger.db").read_bytes() == before


@pytest.mark.parametrize("command", [["runs"], ["train", "job.yaml"]], ids=lambda command: command[0])
def test_a_state_folder_that_is_a_file_is_told(mlcd: Mlcd, home: Path, write_job: WriteJob, command: list[str]) -> None:
    write_job()
    home.write_text("not a folder")
    told = mlcd(*command).complaint
    assert f"{home / 'ledger.db'}: a file has the name of its folder; choose another folder with MLCD_HOME" in told
    assert home.read_text() == "not a folder"


@pytest.mark.parametrize(
    "told, where",
    [("state", "{here}/state"), ("~/state", "{user}/state"), ("", "{user}/.mlcd"), ("/x/../y", "/x/../y")],
)
def test_the_state_folder_is_where_a_shell_would_have_it_and_jobs_find_it_from_theirs(
    told: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/users/ada")
    monkeypatch.setenv("MLCD_HOME", told)
    assert str(home_folder()) == where.format(here=tmp_path, user="/users/ada")


def test_a_state_folder_of_a_user_who_is_not_there_is_told(mlcd: Mlcd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLCD_HOME", "~nobody-of-that-name/state")
    assert "~nobody-of-that-name/state: there is no such home folder; choose one" in mlcd("runs").complaint


@pytest.mark.parametrize(
    "command", [["runs"], ["show", "\udcff"], ["train", "\udcff/job.yaml"]], ids=lambda told: told[0]
)
def test_names_that_are_no_text_are_told(
    mlcd: Mlcd, home: Path, write_job: WriteJob, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("\udcff").mkdir()
    write_job().rename("\udcff/job.yaml")
    if command == ["runs"]:
        monkeypatch.setenv("MLCD_HOME", f"{home}\udcff")
    complaint = mlcd(*command).complaint
    assert "\\udcff" in complaint
    assert "not UTF-8 text; rename it" in complaint


@pytest.mark.parametrize(
    "file, command, told",
    [
        ("servers.json", ["--server", "http://127.0.0.1:9", "runs"], "damaged; delete it, and sign in again"),
        ("models/x.json", ["models", "show", "x"], "is not JSON (maximum recursion"),
    ],
)
def test_a_file_that_is_nested_without_end_is_damaged(
    mlcd: Mlcd, home: Path, file: str, command: list[str], told: str
) -> None:
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text("[" * 100_000)
    assert told in mlcd(*command).complaint


def test_a_ledger_that_is_a_folder_is_told(mlcd: Mlcd, home: Path) -> None:
    (home / "ledger.db").mkdir(parents=True)
    assert "ledger.db: cannot be opened; check the folder" in mlcd("runs").complaint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything; the mounted disk below stands for this")
@pytest.mark.parametrize("command", WRITING, ids=lambda command: command[0])
def test_a_write_protected_ledger_is_told(mlcd: Mlcd, decided: Path, command: list[str]) -> None:
    decided.chmod(0o444)
    decided.parent.chmod(0o555)
    told = mlcd(*command).complaint
    decided.parent.chmod(0o755)
    assert "choose another folder with MLCD_HOME" in told


def test_a_read_only_ledger_can_be_read_and_nothing_else(
    mlcd: Mlcd, recorded_job: WriteJob, disk: Callable[[str], Path]
) -> None:
    state = disk("size=1M")
    job = recorded_job()
    assert mlcd("train", job, "--decide-only").code == 0
    disk("ro")
    for command in READING:
        assert mlcd(*command).code == 0
    for command in WRITING:
        told = mlcd(*command).complaint
        assert told.startswith(f"mlcd: {state}/")
        assert "ead-only" in told
        assert "MLCD_HOME" in told
    disk("rw")
    assert mlcd("launch", "last").code == 0


def test_a_full_disk_before_anything_is_written_is_told(
    mlcd: Mlcd, recorded_job: WriteJob, disk: Callable[[str], Path]
) -> None:
    state = disk("size=4k")
    told = mlcd("train", recorded_job()).complaint
    assert f"{state}/ledger.db: the disk is full; nothing that was written is lost. Make room, then" in told
    disk("size=1M")
    assert mlcd("train", recorded_job()).code == 0


@pytest.mark.parametrize("kilobytes", [150, 156, 162])
def test_a_search_that_filled_the_disk_goes_on_to_the_same_decision(
    mlcd: Mlcd, write_job: WriteJob, disk: Callable[[str], Path], kilobytes: int
) -> None:
    job = write_job("budget: $50")
    heterbo = ("--method", "heterbo", "--decide-only")  # it writes more than net value: enough to fill a small disk
    undisturbed = mlcd("train", job, *heterbo, "-o", "json").document
    disk(f"size={kilobytes}k")
    assert "the disk is full; nothing that was written is lost" in mlcd("train", job, *heterbo).last_words
    assert mlcd("runs", "-o", "json").document["runs"][0]["status"] == "searching"
    disk("size=1M")
    resumed = mlcd("resume", "last", "--decide-only", "-o", "json").document
    assert resumed["decision"] == undisturbed["decision"]
    assert resumed["probes"] == undisturbed["probes"]
    assert resumed["spent_usd"] == pytest.approx(undisturbed["spent_usd"]), "a probe was paid for twice"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["runs", "-o", "json"], ["--version"]], ids=lambda command: command[0])
def test_output_that_cannot_be_written_is_told(home: Path, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mlcd", *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == ExitCode.UNAVAILABLE
    assert done.stderr.startswith("mlcd: cannot write the output: No space left on device")
    assert done.stderr.count("\n") == 1
