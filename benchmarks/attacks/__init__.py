"""Attacks of a hostile team member on `mlcd service`, one function for each."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # mlcd_fixtures
