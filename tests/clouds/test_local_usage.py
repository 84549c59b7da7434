"""CPU and memory use of a real job on this machine is measured, without that of other processes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import why_not_isolated
from mlcd.clouds.usage import usage_in
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.testing.backends import python_job

pytestmark = pytest.mark.live

ONE_CORE = Offer("burner", 0.36, 1.0, 2.0, network_gbps=0.1, cloud="local")
BURNS_AND_KEEPS = """
import os, time, mlcd_tracker
if os.environ["MLCD_RANK"] == "0":
    kept = bytearray(b"kept") * (1 << 27)
    shared = os.fork()  # a worker that shares its memory, like a data loader's: the memory counts once
    began_s = time.process_time()
    while time.process_time() < began_s + (4.0 if shared else 0.0):
        pass
    if not shared:
        time.sleep(5)
        os._exit(0)
    os.waitpid(shared, 0)
    print(f"burnt {sum(os.times()[:4])} s")
mlcd_tracker.step(1_000)
"""


@pytest.mark.parametrize(
    "isolated",
    [
        pytest.param(False, marks=pytest.mark.night),
        pytest.param(True, marks=pytest.mark.skipif(bool(why_not_isolated()), reason="not root")),
    ],
)
def test_the_use_of_a_core_and_of_half_a_gib_is_measured(tmp_path: Path, isolated: bool) -> None:
    backend = Local(tmp_path, WallClock(datetime.now(UTC)), isolated=isolated)
    launch = Launch(f"usage{uuid4().hex[:8]}-1", Configuration(ONE_CORE, 2), Purpose.PROBE, 1_000.0, 120.0, 0)
    list(backend.run(python_job(BURNS_AND_KEEPS), launch))
    usage = usage_in(backend.launches.folder(launch.label))
    assert usage is not None
    assert [machine.name for machine in usage.machines] == (["node 0", "node 1"] if isolated else ["this machine"])
    burnt_s = sum(
        (line.cpu[0] or 0.0) * (line.t - before)
        for before, line in zip([0.0, *(line.t for line in usage.lines)], usage.lines, strict=False)
    )
    told_s = float((backend.launches.folder(launch.label) / "0.log").read_text().partition("burnt ")[2].split()[0])
    assert told_s > 4
    assert burnt_s == pytest.approx(told_s, abs=0.1 * told_s + 0.5), "as measured by the job itself on both nodes"
    peak = usage.memory_peak
    assert peak is not None
    assert peak.machine == usage.machines[0].name
    assert 0.5 <= peak.used_gib < 0.8, "a reading may happen during the fork"
    assert usage.lines[-1].logs["0"] > 0
    if isolated:
        assert (peak.of_gib, usage.machines[0].cores) == (pytest.approx(2e9 / 1024**3, abs=1e-3), 1.0)
