"""The short form of `make box-test`: one scenario on real SkyPilot, where the cloud in a box is at hand."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AT_HAND = (ROOT / ".venv-box" / "installed").exists() and os.geteuid() == 0


@pytest.mark.live
@pytest.mark.skipif(not AT_HAND, reason="the cloud in a box is not at hand: make box, as root")
def test_what_aws_refuses_is_told_costs_nothing_and_leaves_nothing():
    done = subprocess.run([".venv-box/bin/box", "test", "quota"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " ok" in done.stdout
