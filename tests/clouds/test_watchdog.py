"""The watchdog ends a launch if MLCD cannot: a teardown that was interrupted, a record that is damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from mlcd.clouds.launches import Launches
from mlcd.clouds.local import teardown
from mlcd.clouds.local.teardown import Watchdog
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer

pytestmark = pytest.mark.live

DAMAGED = [b"", b"\xff\xfe garbage", b"[]", b'{"started_at": null}', b"nan"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a launch that was ordered a moment ago."""
    offer = Offer("test", 1.0, 1, 1)
    label = f"watched{uuid4().hex[:8]}-1-1"
    return Launches(tmp_path).open(Launch(label, Configuration(offer, 1), Purpose.PROBE, 1.0, None, 0))


@pytest.fixture
def process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One of the launch's processes, which does not end by itself."""
    environment = {**os.environ, "MLCD_LAUNCH": teardown.mark_of(folder)}
    with subprocess.Popen(["sleep", "60"], env=environment, start_new_session=True) as started:
        yield started
        started.kill()


def test_the_watchdog_completes_an_interrupted_teardown(folder: Path, process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(KeyboardInterrupt), Watchdog(folder, None):
        raise KeyboardInterrupt
    assert process.wait(timeout=300) < 0
    assert (folder / "ended").exists()


def test_an_ended_launch_needs_no_watchdog(folder: Path, process: subprocess.Popen[bytes]) -> None:
    with Watchdog(folder, None):
        (folder / "ended").write_text(repr(time.time()))
    assert process.poll() is None  # somebody else's by now: nobody has looked for it


def test_a_watchdog_that_cannot_write_still_ends_the_launch_silently(
    folder: Path, process: subprocess.Popen[bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    with Watchdog(folder, None):
        shutil.rmtree(folder)
    assert process.wait(timeout=300) < 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("file", ["order.json", "ended"])
def test_a_damaged_time_is_replaced_by_the_files_own_time(folder: Path, file: str, damage: bytes) -> None:
    now = time.time()
    (folder / "order.json").write_text(f'{{"started_at": {now - 100}}}')
    (folder / "ended").write_text(repr(now))
    (folder / file).write_bytes(damage)
    written_at = now - 100 if file == "order.json" else now
    os.utime(folder / file, (written_at, written_at))
    assert teardown.tear_down(folder) == pytest.approx(100, abs=0.01)
