"""Reclaims what a crash left of a launch on this machine."""

from pathlib import Path

from mlcd.clouds.local import teardown
from mlcd.core.backend import AlreadyGone


def reclaim(folder: Path) -> float:
    """Tear down what is left of a launch; return the seconds that it was up. Its watchdog may have been faster."""
    was_gone = (folder / "ended").exists()
    seconds = teardown.tear_down(folder)
    return AlreadyGone(seconds) if was_gone else seconds
