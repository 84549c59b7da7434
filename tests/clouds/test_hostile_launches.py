"""A hostile job of a service cannot outlive its launch, nor harm the process that drives it by what it leaves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mlcd.clouds.local import teardown
from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.local.job_user import PROCESSES, job_user, why_no_job_user
from mlcd.clouds.local.teardown import FIRST_USER, USERS
from mlcd.clouds.node_types import load_local_types
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration
from mlcd.core.job import SUBMITTED, Job
from mlcd.core.measurement import Ended, Outcome

pytestmark = pytest.mark.live

if (why := why_no_job_user()) is not None:
    pytest.skip(f"only root gives jobs users of their own: {why}", allow_module_level=True)

RUN = f"hostile{uuid4().hex[:8]}"
REPORTS = "python3 -c 'import mlcd_tracker; mlcd_tracker.step(50)'"
DROPS_THE_MARK = "env -i PATH=$PATH setsid sleep 60 > /dev/null 2>&1 &"
FORKS_AND_LEAVES = """python3 - <<'PROGRAM' &
import os, time
for _ in range(100_000):  # each process lives only for a moment, and starts another one
    if os.fork():
        os._exit(0)
PROGRAM
"""
DEEP = """python3 - <<'PROGRAM'
import os
for _ in range(3_000):
    os.mkdir("deep")
    os.chdir("deep")
PROGRAM
"""
LONG_LOG = "truncate -s 4T /proc/self/fd/1"
SHARED_FOLDERS = (Path("/dev/shm"), Path("/var/tmp"), Path("/tmp"))
Play = Callable[[str, bool], list[object]]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Runs a probe of a member's job."""
    types = load_local_types()
    user = job_user(tmp_path, RUN, tmp_path).number

    def play(command: str, isolated: bool) -> list[object]:
        if isolated and (lacks := why_not_isolated()) is not None:
            pytest.skip(lacks)
        backend = Local(tmp_path, WallClock(datetime.now(UTC)), isolated=isolated)
        order = Launch(f"{RUN}-1", Configuration(types.offers[0], 1), Purpose.PROBE, 50.0, 40.0, 1)
        job = Job("hostile", 100.0, task={"run": f"{command}\n{REPORTS}"}, folder=SUBMITTED)
        events = list(backend.run(job, order))
        assert not processes_of_user(user)
        assert backend.saved(f"{RUN}-1") == 0.0
        return events

    yield play
    subprocess.run(["bash", "-c", "kill -KILL -1"], check=False, user=user, group=user, extra_groups=[], cwd="/")
    subprocess.run(["rm", "-rf", str(tmp_path / "launches")], check=True)  # too deep for pytest's own cleanup


def processes_of_user(user: int) -> list[str]:
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            of_user = f"\nUid:\t{user}\t" in (process / "status").read_text()
            if of_user and ") Z " not in (process / "stat").read_text():
                processes.append((process / "cmdline").read_text())
        except OSError:
            continue
    return processes


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("command", [DROPS_THE_MARK, FORKS_AND_LEAVES])
def test_no_process_of_a_hostile_job_outlives_its_launch(command: str, isolated: bool, play: Play):
    *_, last = play(command, isolated)
    assert isinstance(last, Ended)
    assert last.outcome is Outcome.OK


@pytest.mark.parametrize("command", [DEEP, LONG_LOG])
def test_a_hostile_jobs_launch_ends_normally_whatever_files_it_leaves(command: str, play: Play, tmp_path: Path):
    *_, last = play(command, False)
    assert isinstance(last, Ended)
    assert not any((tmp_path / "launches" / f"{RUN}-1" / name).exists() for name in teardown.OWN_FOLDERS)


def test_no_other_job_sees_what_it_writes_to_world_writable_places(play: Play):
    written = [folder / RUN for folder in SHARED_FOLDERS]
    names = " ".join(map(str, written))
    try:
        *_, last = play(f"for file in {names}; do echo weights > $file || exit 1; done; ipcmk -M 4096 || exit 1", False)
        assert isinstance(last, Ended)
        assert last.outcome is Outcome.OK, last
        assert not [path for path in written if path.exists()]
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        assert not [line for line in segments if int(line.split()[7]) >= FIRST_USER]
    finally:
        for path in written:
            path.unlink(missing_ok=True)


def test_its_number_of_processes_is_limited(play: Play):
    *_, last = play(f'[ "$(ulimit -Hu)" -le {PROCESSES} ] || exit 1', False)
    assert isinstance(last, Ended)
    assert last.outcome is Outcome.OK, last


def test_only_processes_of_the_jobs_own_user_are_ended(tmp_path: Path):
    (tmp_path / "work").mkdir()
    os.chown(tmp_path / "work", FIRST_USER, FIRST_USER)  # another user's folder, in which a job of root works
    assert teardown.user_of(tmp_path) is None
    assert FIRST_USER > 2_000_200_000, "above the ids of SSSD accounts"
    assert FIRST_USER + USERS < 0x7FFE0000, "below the ids of systemd's foreign images"


def test_a_mark_that_is_not_utf8_hides_no_other_mark():
    with subprocess.Popen(["sleep", "60"], env={b"MLCD_LAUNCH": b"\xff", b"PATH": os.defpath.encode()}) as odd:
        try:
            assert teardown.marks() is not None
        finally:
            odd.kill()
