"""Launches on disk: what was ordered, its logs, when it ended. Written before anything exists.

`order.json`   label, start and driver, before the first machine     `N.log`   output of the N-th process
`ended`        the time when everything was gone
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlcd.clouds.platforms.reports import saved_in
from mlcd.core.backend import Launch
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, NoAccess, NothingOrdered, UserError
from mlcd.core.home import home

MOST_READ = 16 << 20
"""Bytes of a log that are in memory at once: it is the job's, which may write, or claim to have written, any number."""
LOOK_S = 0.1
"""Between two looks at a log that is followed."""


@dataclass(frozen=True)
class Launches:
    """The folder that holds a folder for each launch."""

    root: Path

    def open(self, launch: Launch, **facts: object) -> Path:
        """The folder of a new launch."""
        folder = self.folder(launch.label)
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        order = {"label": launch.label, "started_at": time.time(), "configuration": str(launch.configuration), **facts}
        order["driver"] = [os.getpid(), _begun_at(os.getpid())]
        partial = folder / "order.json.new"
        partial.write_text(json.dumps(order), encoding="utf-8")
        partial.replace(folder / "order.json")
        (folder / "ended").unlink(missing_ok=True)  # of a launch of this label in another ledger
        return folder

    def find(self, label: str) -> Path | None:
        """The folder of a launch, if it ever was ordered."""
        folder = self.folder(label)
        return folder if (folder / "order.json").exists() else None

    def order(self, folder: Path) -> dict[str, Any]:
        """What was ordered; nothing where the file is damaged: a launch can be found by its label alone."""
        try:
            told = json.loads((folder / "order.json").read_text(encoding="utf-8"))
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    def driver(self, label: str) -> int | None:
        """The process that ordered a launch, if that lives and is not this one. It may write to another ledger."""
        folder = self.find(label)
        try:
            process, begun_at = self.order(folder).get("driver", [0, None]) if folder is not None else (0, None)
        except (TypeError, ValueError):  # damaged
            return None
        is_it = process != os.getpid() and begun_at is not None and _begun_at(process) == begun_at
        return process if is_it else None

    def log(self, folder: Path, process: int) -> Path | None:
        """Where a process writes, if the launch has it; None while the launch is under way and no process of it has."""
        has_begun = (folder / "0.log").exists() or (folder / "ended").exists()
        return folder / f"{process}.log" if has_begun else None

    def read(self, folder: Path, process: int, clock: Clock | None) -> Iterator[str]:
        """What a process has written; with a clock, also what it will write until the launch is over.

        FileNotFoundError: the launch has no such process, or ended before one began.
        """
        while (written := self.log(folder, process)) is None:
            if clock is None:
                return
            clock.wait(LOOK_S)
        with written.open(encoding="utf-8", errors="replace") as log:
            while True:
                over = (folder / "ended").exists()  # before reading: then nothing is missed
                while piece := log.read(MOST_READ):
                    yield piece
                if clock is None or over:
                    return
                clock.wait(LOOK_S)

    def saved(self, label: str) -> float:
        """The samples of a launch that its job has reported as saved: whoever was to listen may have died."""
        log = self.folder(label) / "0.log"
        if not log.exists():
            return 0.0
        with log.open("rb") as output:
            output.seek(max(0, log.stat().st_size - MOST_READ))
            lines = output.read(MOST_READ).decode(errors="replace").splitlines()
        return max(map(saved_in, lines), default=0.0)

    def folders(self) -> list[Path]:
        """Of every launch that was ever ordered."""
        return [order.parent for order in self.root.glob("*/order.json")]

    def of_run(self, run: str) -> list[Path]:
        """The folders of a run's launches, the first one first."""
        found = [order.parent for order in self.root.glob(f"{run}-*/order.json")]
        numbers = {folder: folder.name.removeprefix(f"{run}-") for folder in found}
        return sorted((each for each in found if numbers[each].isdecimal()), key=lambda each: int(numbers[each]))

    def folder(self, label: str) -> Path:
        """Where a launch of this label is kept."""
        return self.root / label


@contextmanager
def before_ordering() -> Iterator[None]:
    """What fails within has ordered nothing, and costs nothing. A user's mistake would fail every other launch too."""
    try:
        yield
    except NothingOrdered:
        raise
    except UserError as error:
        raise NoAccess(str(error)) from error
    except BackendError as error:
        raise NothingOrdered(str(error)) from error


def _begun_at(process: int) -> str | None:
    """When a process that lives began, as the system counts; its number alone may be used again."""
    try:
        state, *facts = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else facts[18]


def launches_here() -> Launches:
    """What is kept of launches on real machines, on this one."""
    return Launches(home() / "launches")
