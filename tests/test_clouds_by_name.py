"""Places are found by the name before the colon, and imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mlcd.assemble import cloud
from mlcd.assemble.clouds import PLACES
from mlcd.errors import UnknownName
from mlcd.job import Job


@pytest.mark.parametrize("on", ["simulatd", "simulated:x", "recorded", "moon:aws"])
def test_a_place_that_nobody_knows_is_refused_in_a_line(on: str):
    with pytest.raises(UnknownName, match="backend"):
        cloud(on, Job("job", 1e6))


def test_a_place_of_another_package_is_asked_like_our_own(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def moon(rest, job, elapsed_s, started_at):
        asked.append((rest, elapsed_s))
        return PLACES["simulated"]("", job, elapsed_s, started_at)

    monkeypatch.setitem(PLACES.built_in, "moon", moon)
    assert len(cloud("moon:dark-side", Job("job", 1e6), 7.0).space) > 0
    assert asked == [("dark-side", 7.0)]


def test_a_simulated_cloud_imports_no_other_place():
    script = (
        "import sys; from mlcd.assemble import cloud; from mlcd.job import Job\n"
        "cloud('simulated', Job('job', 1e6))\n"
        "other = [name for name in sys.modules if name.startswith(('mlcd.backends.ray', 'mlcd.backends.skypilot'))]\n"
        "sys.exit(str(other) if other else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
