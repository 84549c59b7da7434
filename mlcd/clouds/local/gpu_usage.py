"""How busy a launch's GPUs are and how much memory they use, in `gpus.csv` in the launch's folder."""

import csv
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from mlcd.clouds.local.gpus import Gpu, ask_nvidia_smi
from mlcd.core.errors import BackendError

FILE = "gpus.csv"
COLUMNS = ("elapsed_s", "gpu", "name", "memory_mib", "used_mib", "busy_percent")
EVERY_S = 2.0
MOST_SHARE = 0.05
"""The share of the time that nvidia-smi may run: on a large machine it takes a second."""
ENDS_WITHIN_S = 0.5
"""How long teardown waits for a reading that has begun."""


class UsageRecorder:
    """Reads the GPUs of a launch every few seconds, in a thread, while the `with` block runs."""

    def __init__(
        self,
        gpus: Iterable[Gpu],
        folder: Path,
        read: Callable[[], Sequence[Gpu]] = ask_nvidia_smi,
        every_s: float = EVERY_S,
    ) -> None:
        self._own, self._file = {gpu.uuid for gpu in gpus}, folder / FILE
        self._read, self._every_s = read, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._record, name="gpu-usage", daemon=True)

    def __enter__(self) -> None:
        if self._own:
            self._file.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
            self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._own:
            self._thread.join(ENDS_WITHIN_S)

    def _record(self) -> None:
        started_s, wait_s = time.monotonic(), self._every_s
        while not self._over.wait(wait_s):
            asked_s = time.monotonic()
            with suppress(BackendError, OSError):  # a reading that fails, or a full disk, is no reason to end a job
                self._write(asked_s - started_s, self._read())
            wait_s = max(self._every_s, (time.monotonic() - asked_s) / MOST_SHARE)

    def _write(self, elapsed_s: float, gpus: Sequence[Gpu]) -> None:
        own = [gpu for gpu in gpus if gpu.uuid in self._own]
        if self._over.is_set():  # the reading was still on its way when the launch ended
            return
        with self._file.open("a", encoding="utf-8", newline="") as file:
            for gpu in own:
                busy = "" if gpu.busy_percent is None else f"{gpu.busy_percent:g}"
                cells = (f"{elapsed_s:.3f}", gpu.uuid, gpu.name, f"{gpu.memory_mib:g}", f"{gpu.used_mib:g}", busy)
                csv.writer(file, lineterminator="\n").writerow(cells)


@dataclass(frozen=True, slots=True)
class Usage:
    """A launch's GPUs: how busy on average, from its start to its end, and the most memory that one of them used."""

    kinds: str
    busy_percent: float | None
    peak_gib: float
    memory_gib: float
    readings: int


def usage_in(folder: Path) -> Usage | None:
    """What was recorded of a launch's GPUs; None if it had none, or ended before the first reading."""
    try:
        text = (folder / FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    rows = [row for row in csv.DictReader(text.splitlines()) if _is_whole(row)]
    if not rows:
        return None
    names = list({row["gpu"]: row["name"] for row in rows}.values())
    busy = [float(row["busy_percent"]) for row in rows if row["busy_percent"]]
    return Usage(
        kinds=", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)),
        busy_percent=sum(busy) / len(busy) if busy else None,
        peak_gib=max(float(row["used_mib"]) for row in rows) / 1_024,
        memory_gib=max(float(row["memory_mib"]) for row in rows) / 1_024,
        readings=len({row["elapsed_s"] for row in rows}),
    )


def _is_whole(row: dict[str, str | None]) -> bool:
    """Whether a line was written to its end: the last one may not be, after a crash."""
    try:
        float(row["used_mib"] or ""), float(row["memory_mib"] or ""), float(row["busy_percent"] or 0)
    except (KeyError, ValueError):
        return False
    return row["busy_percent"] is not None
