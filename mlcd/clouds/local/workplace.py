"""Where the processes of a launch work: the folder that they start in, the folders they are told of, and as whom."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mlcd.clouds.environment import CACHES, inherited
from mlcd.clouds.local.apart import OwnPlace, Started, apart, too_large, why_no_overlay
from mlcd.clouds.local.job_user import ROOM, TRUST, JobUser, environment_of_root, job_user, why_no_job_user
from mlcd.clouds.local.teardown import USER, mark_of
from mlcd.core.backend import Launch, Purpose
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job


@dataclass(frozen=True)
class PlaceOfJobUser:
    """An empty folder of a user of the run's own."""

    user: JobUser

    def show(self, name: str, path: Path, to_write: bool = False) -> tuple[PlaceOfJobUser, str]:
        """The place with a file or a folder that processes need, and the path under which they find it."""
        if to_write:
            self.user.give(path)
        elif path.is_file():
            path.chmod(0o644)  # others cannot enter the state folder, in which it lies
        user = replace(self.user, shown={**self.user.shown, name: path})
        return replace(self, user=user), str(ROOM / name)

    def started(self, command: str, environment: Mapping[str, str]) -> Started:
        """How a shell command is started here. Caches of the service's are none of the job's."""
        kept = {name: value for name, value in inherited().items() if name not in CACHES}
        line = shlex.join(self.user.command(["bash", "-c", command], {**kept, **environment}))
        return Started(line, environment_of_root(mark_of(self.user.folder)), self.user.folder)

    def give(self, file: Path) -> None:
        """Processes may open this file, their log: /dev/stderr is a path, too."""
        os.chown(file, self.user.number, self.user.number)

    def bring_back(self) -> None:
        """The folder goes with the launch: what is to stay is in the checkpoint folder."""


Workplace = OwnPlace | PlaceOfJobUser


def workplace(job: Job, launch: Launch, home: Path, folder: Path) -> Workplace:
    """The place of a launch that is kept in `folder`.

    A probe of one's own job works apart from the user's folder; the final run works in it, as it would without MLCD.
    """
    if job.folder != SUBMITTED:
        inside = working_folder(job)
        return apart(inside, folder, home) if launch.purpose is Purpose.PROBE else OwnPlace(inside)
    if (why := why_no_job_user()) is None:
        user = job_user(home, launch.label.rpartition("-")[0], folder)
        (folder / USER).write_text(str(user.number), encoding="ascii")
        return PlaceOfJobUser(user)
    if not os.environ.get(TRUST):  # workers have refused it before; an operator may go on with a member's run by hand
        raise UserError(f"a service's job would run as your own user here ({why}); if you trust its owner: {TRUST}=1")
    (folder / "work").mkdir(exist_ok=True)
    return OwnPlace(folder / "work")


def working_folder(job: Job) -> Path:
    """The user's folder that a job works in."""
    return Path(job.folder or ".") / str(job.task.get("workdir") or ".")


def what_probes_share(job: Job, home: Path) -> str:
    """What of the user's folder is not a probe's own, in a line; nothing where all of it is."""
    inside = working_folder(job).resolve()
    if job.folder == SUBMITTED or not inside.is_dir() or why_no_overlay(inside, home) is None:
        return ""
    shared = too_large(inside)
    return f"probes share {', '.join(shared)} in {inside}: too large to copy for each" if shared else ""
