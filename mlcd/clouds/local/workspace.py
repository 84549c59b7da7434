"""The workspace of a launch's processes: their working directory, the folders they can see, and their user."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mlcd.clouds.environment import CACHES, inherited
from mlcd.clouds.local.job_user import ROOM, TRUST, JobUser, environment_of_root, job_user, why_no_job_user
from mlcd.clouds.local.private_workspace import CommandLine, Workspace, private_workspace, too_large, why_no_overlay
from mlcd.clouds.local.teardown import USER, mark_of
from mlcd.core.backend import Launch, Purpose
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job


@dataclass(frozen=True)
class JobUserWorkspace:
    """An empty folder that belongs to the run's own user."""

    user: JobUser

    def expose(self, name: str, path: Path, to_write: bool = False) -> tuple[JobUserWorkspace, str]:
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
        """Nothing: the folder is deleted with the launch; results belong into the checkpoint folder."""


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
    """The folder that a job works in."""
    return Path(job.folder or ".") / str(job.task.get("workdir") or ".")


def what_probes_share(job: Job, home: Path) -> str:
    """One line on what probes share in the user's folder; empty if they share nothing."""
    cwd = working_folder(job).resolve()
    if job.folder == SUBMITTED or not cwd.is_dir() or why_no_overlay(cwd, home) is None:
        return ""
    shared = too_large(cwd)
    return f"probes share {', '.join(shared)} in {cwd}: too large to copy for each" if shared else ""
