"""Whether members' jobs may run on this machine: as separate users, or because the operator trusts the members.

A job that runs as the service's own user can do everything that the service can, such as read the database's password
and make its owner an admin. So it is refused, unless the operator allows it (`--trust-runners`).
"""

import ctypes
import os
from collections.abc import Sequence

from mlcd.clouds.local.job_user import TRUST, why_no_job_user
from mlcd.core.errors import UserError
from mlcd.core.job import SUBMITTED, Job, only_computed

PR_SET_DUMPABLE = 4
SAME_USER = {
    "ray": "Ray's nodes run jobs as their own user",
    "functions": "Lithops runs functions as the service's user",
}


def why_trust(place: str) -> str | None:
    """Why jobs at this kind of place would have to be trusted; None if they need not."""
    return why_no_job_user() if place == "local" else SAME_USER.get(place)


def check_places(places: Sequence[str], trusted: bool) -> None:
    """`UserError` if members' jobs would run as the service's own user without the operator's permission."""
    for place in places if not trusted else ():
        if (why := why_trust(place)) is not None:
            raise UserError(
                f"--places {place}: jobs would run as the service's own user and could read its secrets ({why}); "
                "run it as root, which gives each run on `local` its own user, or pass --trust-runners"
            )


def check_trusted(job: Job) -> None:
    """The same check for a submitted job, on the machine that will drive it."""
    place = job.on.partition(":")[0]
    if job.folder != SUBMITTED or only_computed(job.on) or os.environ.get(TRUST):
        return
    if (why := why_trust(place)) is not None:
        raise UserError(f"this worker runs no jobs on {place} ({why}); its operator could pass --trust-runners")


def keep_memory_private(private: bool = True) -> None:
    """Keep other processes of this user from reading this one's memory or environment (/proc/PID) and tracing it.

    While that is set, the process itself cannot write to files below /proc/self.
    """
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(not private), 0, 0, 0)
