"""The shortest scenario of `make box-test`, on real SkyPilot, if the cloud in a box is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HAS_BOX = (ROOT / ".venv-box" / "installed").exists() and os.geteuid() == 0


@pytest.mark.live
@pytest.mark.skipif(not HAS_BOX, reason="the cloud in a box is not installed: make box, as root")
def test_a_refused_order_is_reported_costs_nothing_and_leaves_nothing():
    done = subprocess.run([".venv-box/bin/box", "test", "quota"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " ok" in done.stdout
