"""Finds and tears down what a crash left of launches on this machine."""

from pathlib import Path

from mlcd.clouds.launches import KeepsLaunches
from mlcd.clouds.local import teardown
from mlcd.core.backend import AlreadyGone


def reclaim(folder: Path) -> float:
    """Tear down what is left of a launch; return the seconds that it was up.

    `AlreadyGone`, if its watchdog has done it before.
    """
    was_gone = (folder / "ended").exists()
    seconds = teardown.tear_down(folder)
    return AlreadyGone(seconds) if was_gone else seconds


class OnThisMachine(KeepsLaunches):
    """Base class of backends that run launches here. Each process has the launch's mark in its environment."""

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch; return the seconds that it was up."""
        folder = self.launches.find(label)
        return None if folder is None else reclaim(folder)

    def leftovers(self) -> set[str]:
        """Launches that still have processes, control groups or namespaces."""
        remaining = teardown.marks()
        return {folder.name for folder in self.launches.folders() if teardown.mark_of(folder) in remaining}
