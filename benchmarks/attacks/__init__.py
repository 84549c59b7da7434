"""What a hostile member of a team can try against `mlcd service`, one function for each attack."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # mlcd_fixtures
