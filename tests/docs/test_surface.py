"""What a user can name stays, or the changelog says what came of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BEFORE = HERE / "surface-before-18.txt"
"""At 7f55a0b, before the folders were laid out anew (issue 18)."""


def explained(line: str, changelog: str) -> bool:
    """Whether the changelog names a line of the list, or the command that it belongs to."""
    kind, _, name = line.partition(" ")
    command = name.partition(" -")[0] if kind in ("option", "choice") else name.rpartition(" ")[0]
    return f"`{line}`" in changelog or f"`command {command}`" in changelog


def test_every_name_that_came_or_went_is_in_the_changelog() -> None:
    now = subprocess.run([sys.executable, HERE / "surface.py"], capture_output=True, text=True, check=True).stdout
    changed = set(now.splitlines()) ^ set(BEFORE.read_text().splitlines())
    changelog = (HERE.parents[1] / "CHANGELOG.md").read_text()
    assert [line for line in sorted(changed) if not explained(line, changelog)] == []
