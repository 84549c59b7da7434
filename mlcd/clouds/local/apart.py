"""A working folder of a probe's own: what it writes there changes neither the user's folder nor the next launch.

As root it is an overlay, under the path of the user's folder itself: nothing is copied, however large the data are.
Where that cannot be mounted it is a copy. What is too large to copy is linked, and so shared: see `too_large`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mlcd.clouds.environment import inherited

MOST_BYTES, MOST_FILES = 100_000_000, 10_000
"""Of an entry of the user's folder that is copied for each probe."""
MOST_NEIGHBOURS = 1_000
MOUNTS = Path("/proc/self/mountinfo")
COVER = """set -e
seen=$1 folder=$2; shift 2
while [ "$1" != -- ]; do mount --rbind "$folder/$1" "$seen/$1"; shift; done  # what is mounted inside the folder
shift
mount --rbind "$seen" "$folder"
cd "$folder"
exec "$@"
"""


@dataclass(frozen=True)
class Started:
    """A command as it is started: its line, its environment, and where."""

    command: str
    environment: dict[str, str]
    inside: Path


@dataclass(frozen=True)
class OwnPlace:
    """A folder of whoever started MLCD, as whom the processes run."""

    inside: Path

    def show(self, name: str, path: Path, to_write: bool = False) -> tuple[OwnPlace, str]:
        """The place with a file or a folder that processes need, and the path under which they find it."""
        if to_write:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self, str(path)

    def started(self, command: str, environment: Mapping[str, str]) -> Started:
        """How a shell command is started here."""
        return Started(command, {**inherited(), **environment}, self.inside)

    def give(self, file: Path) -> None:
        """Processes may open this file, their log."""

    def bring_back(self) -> None:
        """What processes have written here is to be in the user's folder."""


@dataclass(frozen=True)
class Overlay(OwnPlace):
    """An overlay over the user's folder, `inside`, kept in the launch's folder."""

    folder: Path

    def mount(self) -> bool:
        """Whether it could be mounted."""
        seen, changes, needed = (self.folder / name for name in ("work", "changes", "overlay"))
        for each in (seen, changes, needed):
            each.mkdir(exist_ok=True)
        about = self.inside.stat()
        os.chown(changes, about.st_uid, about.st_gid)
        changes.chmod(stat.S_IMODE(about.st_mode))
        options = f"lowerdir={self.inside},upperdir={changes},workdir={needed}"
        command = ["mount", "-t", "overlay", "mlcd", "-o", options, str(seen)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def started(self, command: str, environment: Mapping[str, str]) -> Started:
        """In a mount namespace where the overlay lies over the user's folder."""
        cover = ["bash", "-c", COVER, "mlcd", str(self.folder / "work"), str(self.inside), *_mounted_in(self.inside)]
        private = ["unshare", "--mount", "--propagation", "slave", *cover, "--", "bash", "-c", command]
        return super().started(shlex.join(private), environment)

    def bring_back(self) -> None:
        """Copy what was written; what was deleted stays."""
        _copy_back(self.folder / "changes", self.inside)


@dataclass(frozen=True)
class Copy(OwnPlace):
    """A copy of the user's folder, `original`. Beside it lie links to the neighbours of the original."""

    original: Path = field(default=Path())

    @classmethod
    def made(cls, original: Path, folder: Path, home: Path) -> Copy:
        """Copy it, below the launch's folder."""
        inside = folder / "copy" / (original.name or "work")
        own = {each.name for each in original.iterdir() if home.resolve().is_relative_to(each)}
        linked = {*too_large(original), *own}

        def left_out(above: str, _: list[str]) -> set[str]:
            return linked if Path(above) == original else set()

        with suppress(shutil.Error):  # a file that cannot be read is missing, as it would be for the job
            shutil.copytree(original, inside, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        links = {inside / name: original / name for name in linked}
        neighbours = [each for each in original.parent.iterdir() if each.name != inside.name]
        if len(neighbours) <= MOST_NEIGHBOURS:
            links |= {inside.parent / each.name: each for each in neighbours}
        for link, target in links.items():
            if not link.is_symlink():
                link.symlink_to(target)
        return cls(inside, original)

    def bring_back(self) -> None:
        """Copy what is new; what was deleted stays."""
        _copy_back(self.inside, self.original)


def apart(inside: Path, folder: Path, home: Path) -> OwnPlace:
    """A place like the user's folder `inside`, apart from it, for the launch that is kept in `folder`."""
    inside = inside.resolve()
    if not inside.is_dir():
        return OwnPlace(inside)
    if why_no_overlay(inside, home) is None and (overlay := Overlay(inside, folder)).mount():
        return overlay
    return Copy.made(inside, folder, home)


def why_no_overlay(inside: Path, home: Path) -> str | None:
    """What keeps an overlay from lying over this folder, or None."""
    if os.geteuid() != 0 or not (shutil.which("mount") and shutil.which("unshare")):
        return "only root mounts overlays, with mount and unshare"
    if any(letter in f"{inside}{home}" for letter in ":,\\"):  # they mean something to mount
        return "odd characters in a path"
    return "MLCD_HOME is inside it" if home.resolve().is_relative_to(inside) else None


def too_large(inside: Path) -> list[str]:
    """What lies in the user's folder and is not copied for each probe, but linked."""
    return sorted(each.name for each in inside.iterdir() if _is_large(each))


def _is_large(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return not path.is_symlink() and path.stat().st_size > MOST_BYTES
    size = files = 0
    for above, _, names in os.walk(path):
        files += 1 + len(names)
        size += sum(os.lstat(os.path.join(above, name)).st_size for name in names)
        if size > MOST_BYTES or files > MOST_FILES:
            return True
    return False


def _mounted_in(folder: Path) -> list[str]:
    """Mounts below a folder, from there: an overlay does not show what is mounted inside of what it covers."""
    points = [Path(line.split()[4].replace("\\040", " ")) for line in MOUNTS.read_text().splitlines()]
    return sorted({str(each.relative_to(folder)) for each in points if each.is_relative_to(folder) and each != folder})


def _copy_back(written: Path, folder: Path) -> None:
    for path in _new_files(written, folder):
        target = folder / path.relative_to(written)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def _new_files(written: Path, folder: Path) -> Iterator[Path]:
    """Files that are not in the folder, or newer there. A device is an overlay's note of what was deleted."""
    for above, _, names in os.walk(written):
        for path in (Path(above) / name for name in names):
            about, before = path.lstat(), folder / path.relative_to(written)
            if stat.S_ISREG(about.st_mode) and (not before.exists() or about.st_mtime_ns > before.stat().st_mtime_ns):
                yield path
