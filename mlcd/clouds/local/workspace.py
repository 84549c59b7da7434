"""The workspace of a launch's processes: their working directory, the folders that they can see, and their user.

A probe changes neither the user's folder nor other launches. As root it works in an overlay mounted over the path of
the user's folder, so no data are copied. If no overlay can be mounted it works in a copy, in which large files and
folders are links, and therefore shared: see `too_large`.
"""

import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from mlcd.clouds.environment import CACHES, inherited
from mlcd.clouds.local.job_user import ROOM, TRUST, JobUser, environment_of_root, job_user, why_no_job_user
from mlcd.clouds.local.teardown import USER, mark_of
from mlcd.core.backend import Launch, Purpose
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job

MAX_BYTES, MAX_FILES = 100_000_000, 10_000
"""A file or subfolder of the user's folder that is larger than this is linked, not copied."""
MAX_NEIGHBOURS = 1_000
MOUNTS = Path("/proc/self/mountinfo")
COVER = """set -e
overlay=$1 folder=$2; shift 2
while [ "$1" != -- ]; do mount --rbind "$folder/$1" "$overlay/$1"; shift; done  # what is mounted inside the folder
shift
mount --rbind "$overlay" "$folder"
cd "$folder"
exec "$@"
"""


@dataclass(frozen=True)
class CommandLine:
    """A command line with its environment and its working directory."""

    command: str
    environment: dict[str, str]
    cwd: Path


@dataclass(frozen=True)
class Workspace:
    """The user's own folder. The processes run as the user who started MLCD."""

    cwd: Path

    def expose(self, name: str, path: Path, to_write: bool = False) -> tuple[Self, str]:
        """Make a file or a folder visible to the processes; return the new workspace and the path that they see."""
        if to_write:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self, str(path)

    def command_line(self, command: str, environment: Mapping[str, str]) -> CommandLine:
        """The command line that runs a shell command here."""
        return CommandLine(command, {**inherited(), **environment}, self.cwd)

    def grant(self, file: Path) -> None:
        """Let the processes open this file, their log."""

    def copy_back(self) -> None:
        """Copy what the processes wrote to the user's folder."""


@dataclass(frozen=True)
class Overlay(Workspace):
    """An overlay over the user's folder, `cwd`. Its layers are in the launch's folder."""

    folder: Path

    def mount(self) -> bool:
        """Mount it; False if that fails."""
        merged, changes, work = (self.folder / name for name in ("work", "changes", "overlay"))
        for each in (merged, changes, work):
            each.mkdir(exist_ok=True)
        info = self.cwd.stat()
        os.chown(changes, info.st_uid, info.st_gid)
        changes.chmod(stat.S_IMODE(info.st_mode))
        options = f"lowerdir={self.cwd},upperdir={changes},workdir={work}"
        command = ["mount", "-t", "overlay", "mlcd", "-o", options, str(merged)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def command_line(self, command: str, environment: Mapping[str, str]) -> CommandLine:
        """Run it in a mount namespace in which the overlay covers the user's folder."""
        cover = ["bash", "-c", COVER, "mlcd", str(self.folder / "work"), str(self.cwd), *_mounted_in(self.cwd)]
        private = ["unshare", "--mount", "--propagation", "slave", *cover, "--", "bash", "-c", command]
        return super().command_line(shlex.join(private), environment)

    def copy_back(self) -> None:
        """Copy new and changed files; deletions are not applied."""
        _copy_back(self.folder / "changes", self.cwd)


@dataclass(frozen=True)
class Copy(Workspace):
    """A copy of the user's folder, `original`. Next to it are links to the original's neighbours (`../data`)."""

    original: Path

    @classmethod
    def create(cls, original: Path, folder: Path, home: Path) -> Self:
        """Copy the user's folder into the launch's folder."""
        cwd = folder / "copy" / (original.name or "work")
        ours = (home.resolve(), folder.resolve())
        holds_ours = {each.name for each in original.iterdir() if any(one.is_relative_to(each) for one in ours)}
        linked = {*too_large(original), *holds_ours}

        def left_out(above: str, _: list[str]) -> set[str]:
            return linked if Path(above) == original else set()

        with suppress(shutil.Error):  # a file that cannot be read; the job could not read it either
            shutil.copytree(original, cwd, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        links = {cwd / name: original / name for name in linked}
        neighbours = [each for each in original.parent.iterdir() if each.name != cwd.name]
        if len(neighbours) <= MAX_NEIGHBOURS:
            links |= {cwd.parent / each.name: each for each in neighbours}
        for link, target in links.items():
            if not link.is_symlink():
                link.symlink_to(target)
        return cls(cwd, original)

    def copy_back(self) -> None:
        """Copy new and changed files; deletions are not applied."""
        _copy_back(self.cwd, self.original)


@dataclass(frozen=True)
class JobUserWorkspace:
    """An empty folder that belongs to the run's own user."""

    user: JobUser

    def expose(self, name: str, path: Path, to_write: bool = False) -> tuple[Self, str]:
        """Make a file or a folder visible to the processes; return the new workspace and the path that they see."""
        if to_write:
            self.user.create_private(path)
        elif path.is_file():
            path.chmod(0o644)  # safe: other users cannot enter the state folder that contains it
        user = replace(self.user, shown={**self.user.shown, name: path})
        return replace(self, user=user), str(ROOM / name)

    def command_line(self, command: str, environment: Mapping[str, str]) -> CommandLine:
        """The command line that runs a shell command here, without the paths of the service's caches."""
        kept = {name: value for name, value in inherited().items() if name not in CACHES}
        line = shlex.join(self.user.command(["bash", "-c", command], {**kept, **environment}))
        return CommandLine(line, environment_of_root(mark_of(self.user.folder)), self.user.folder)

    def grant(self, file: Path) -> None:
        """Let the processes open this file, their log: some open it again as /dev/stderr."""
        os.chown(file, self.user.number, self.user.number)

    def copy_back(self) -> None:
        """Does nothing: the folder is deleted with the launch; results belong in the checkpoint folder."""


AnyWorkspace = Workspace | JobUserWorkspace


def workspace_of(job: Job, launch: Launch, home: Path, folder: Path) -> AnyWorkspace:
    """The workspace of the launch in `folder`.

    A probe of a user's own job gets a private version of the user's folder; the final run works in the folder itself.
    """
    if job.folder != SUBMITTED:
        cwd = working_folder(job)
        return private_workspace(cwd, folder, home) if launch.purpose is Purpose.PROBE else Workspace(cwd)
    if (why := why_no_job_user()) is None:
        user = job_user(home, launch.label.rpartition("-")[0], folder)
        (folder / USER).write_text(str(user.number), encoding="ascii")
        return JobUserWorkspace(user)
    if not os.environ.get(TRUST):  # workers refuse such a job; an operator may still resume it by hand
        raise UserError(f"a service's job would run as your own user here ({why}); if you trust its owner: {TRUST}=1")
    (folder / "work").mkdir(exist_ok=True)
    return Workspace(folder / "work")


def working_folder(job: Job) -> Path:
    """The folder that a job works in: its `workdir`, or the folder of its file."""
    return Path(job.folder or ".") / str(job.task.get("workdir") or ".")


def shared_files_warning(job: Job, home: Path) -> str:
    """A one-line warning if probes share files in the user's folder; empty if they do not."""
    cwd = working_folder(job).resolve()
    if job.folder == SUBMITTED or not cwd.is_dir() or why_no_overlay(cwd, home) is None:
        return ""
    shared = too_large(cwd)
    return f"probes share {', '.join(shared)} in {cwd}: too large to copy for each" if shared else ""


def private_workspace(cwd: Path, folder: Path, home: Path) -> Workspace:
    """A private version of the user's folder `cwd`, for the launch in `folder`."""
    cwd = cwd.resolve()
    if not cwd.is_dir():
        return Workspace(cwd)
    if why_no_overlay(cwd, home) is None and (overlay := Overlay(cwd, folder)).mount():
        return overlay
    return Copy.create(cwd, folder, home)


def why_no_overlay(cwd: Path, home: Path) -> str | None:
    """Why no overlay can be mounted over this folder; None if it can."""
    if os.geteuid() != 0 or not (shutil.which("mount") and shutil.which("unshare")):
        return "only root mounts overlays, with mount and unshare"
    if any(letter in f"{cwd}{home}" for letter in ":,\\"):  # special characters in mount options
        return "a path contains ':', ',' or '\\'"
    return "MLCD_HOME is inside it" if home.resolve().is_relative_to(cwd) else None


def too_large(cwd: Path) -> list[str]:
    """Names of the files and subfolders that are linked instead of copied for each probe."""
    return sorted(each.name for each in cwd.iterdir() if _is_large(each))


def _is_large(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return not path.is_symlink() and path.stat().st_size > MAX_BYTES
    size = files = 0
    for above, _, names in os.walk(path):
        files += 1 + len(names)
        size += sum(os.lstat(os.path.join(above, name)).st_size for name in names)
        if size > MAX_BYTES or files > MAX_FILES:
            return True
    return False


def _mounted_in(folder: Path) -> list[str]:
    """Mount points in a folder, as relative paths: an overlay does not include what is mounted in its lower layer."""
    points = [Path(line.split()[4].replace("\\040", " ")) for line in MOUNTS.read_text().splitlines()]
    return sorted({str(each.relative_to(folder)) for each in points if each.is_relative_to(folder) and each != folder})


def _copy_back(written: Path, folder: Path) -> None:
    """Copy files that are missing in the folder or older there; not devices, by which overlays mark deletions."""
    for above, _, names in os.walk(written):
        for path in (Path(above) / name for name in names):
            info, target = path.lstat(), folder / path.relative_to(written)
            is_newer = not target.exists() or info.st_mtime_ns > target.stat().st_mtime_ns
            if stat.S_ISREG(info.st_mode) and is_newer:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copy2(path, target, follow_symlinks=False)
