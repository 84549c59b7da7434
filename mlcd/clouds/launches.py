"""The folder that records a launch on disk. It is written before any machine exists, so that a crash loses no machine.

`order.json`    the order: label, start time, the process that placed it
`N.log`         output of the N-th process
`usage.jsonl`   CPU, GPU and memory use of its machines
`ended`         when everything was torn down
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlcd.clouds import usage
from mlcd.clouds.frameworks.reports import saved_in
from mlcd.core.backend import Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.errors import BackendError, NoAccess, NothingOrdered, UserError
from mlcd.core.home import home

MAX_READ_BYTES = 16 << 20
"""Bytes of a log held in memory at once. The job writes the log, so it can be of any size."""
POLL_S = 0.1
"""Polling interval of a log that is followed."""


@dataclass(frozen=True)
class Launches:
    """The folder that holds a folder for each launch."""

    root: Path

    def open(self, launch: Launch, **facts: object) -> Path:
        """Create the folder of a new launch and write its order; `facts` are stored in it too."""
        folder = self.folder(launch.label)
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        order = {"label": launch.label, "started_at": time.time(), "configuration": str(launch.configuration), **facts}
        order["driver"] = [os.getpid(), _start_time(os.getpid())]
        partial = folder / "order.json.new"
        partial.write_text(json.dumps(order), encoding="utf-8")
        partial.replace(folder / "order.json")
        for old in ("ended", usage.FILE):  # left by a launch with this label in another ledger
            (folder / old).unlink(missing_ok=True)
        return folder

    def find(self, label: str) -> Path | None:
        """The folder of a launch; None if it was never ordered."""
        folder = self.folder(label)
        return folder if (folder / "order.json").exists() else None

    def order(self, folder: Path) -> dict[str, Any]:
        """The content of `order.json`; empty if the file is damaged. The label alone is enough to find a launch."""
        try:
            order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
        except ValueError:
            return {}
        return order if isinstance(order, dict) else {}

    def driver(self, label: str) -> int | None:
        """The process that ordered a launch, if it is alive and not this one. It may be using another ledger."""
        folder = self.find(label)
        try:
            process, start_time = self.order(folder)["driver"] if folder is not None else (0, None)
        except (KeyError, TypeError, ValueError):  # damaged
            return None
        is_alive = process != os.getpid() and start_time is not None and _start_time(process) == start_time
        return process if is_alive else None

    def log(self, folder: Path, process: int) -> Path | None:
        """The log file of a process; None while the launch has not started any process yet."""
        has_begun = (folder / "0.log").exists() or (folder / "ended").exists()
        return folder / f"{process}.log" if has_begun else None

    def read(self, folder: Path, process: int, clock: Clock | None) -> Iterator[str]:
        """The output of a process. With a clock, follow it until the launch is over.

        FileNotFoundError: the launch has no such process, or it ended before any was started.
        """
        while (path := self.log(folder, process)) is None:
            if clock is None:
                return
            clock.wait(POLL_S)
        with path.open(encoding="utf-8", errors="replace", newline="") as log:
            while True:
                ended = (folder / "ended").exists()  # checked before reading, so that no output is missed
                while piece := log.read(MAX_READ_BYTES):
                    yield piece
                if clock is None or ended:
                    return
                clock.wait(POLL_S)

    def saved(self, label: str) -> float:
        """Samples that the job reported as saved, read from its log: the process that followed it may have died."""
        log = self.folder(label) / "0.log"
        if not log.exists():
            return 0.0
        with log.open("rb") as output:
            output.seek(max(0, log.stat().st_size - MAX_READ_BYTES))
            lines = output.read(MAX_READ_BYTES).decode(errors="replace").splitlines()
        return max(map(saved_in, lines), default=0.0)

    def folders(self) -> list[Path]:
        """The folders of all launches that were ever ordered."""
        return [order.parent for order in self.root.glob("*/order.json")]

    def of_run(self, run: str) -> list[Path]:
        """The folders of a run's launches, in order."""
        orders = self.root.glob(f"{run}-*/order.json")
        ordered = {order.parent.name.removeprefix(f"{run}-"): order.parent for order in orders}
        return [ordered[number] for number in sorted(filter(str.isdecimal, ordered), key=int)]

    def folder(self, label: str) -> Path:
        """The folder of this label, whether or not it exists."""
        return self.root / label


class KeepsLaunches:
    """Base class of a live backend that records its launches in a state folder, `home`."""

    home: Path
    provenance = Provenance.LIVE

    @property
    def launches(self) -> Launches:
        """All launches of this state folder."""
        return Launches(self.home / "launches")

    def saved(self, label: str) -> float:
        """Samples saved by a launch that was not followed to its end."""
        return self.launches.saved(label)


@contextmanager
def before_ordering() -> Iterator[None]:
    """An error inside this block means that nothing was ordered and nothing is billed.

    A user's mistake becomes `NoAccess`: every other launch would fail with it, too.
    """
    try:
        yield
    except NothingOrdered:
        raise
    except UserError as error:
        raise NoAccess(str(error)) from error
    except BackendError as error:
        raise NothingOrdered(str(error)) from error


def _start_time(process: int) -> str | None:
    """The kernel's start time of a live process: a process number alone may be reused."""
    try:
        state, *facts = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else facts[18]


def launches_here() -> Launches:
    """The launches recorded in the state folder of this machine."""
    return Launches(home() / "launches")
