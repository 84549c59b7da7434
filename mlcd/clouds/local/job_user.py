"""Runs the jobs of each run that was submitted to a service as a separate system user, who cannot read its files.

The service has to run as root. Each command of such a job runs under a user id of that run alone, without privileges
or a way to gain them (`setpriv`), in a mount namespace in which it sees

`/run/mlcd/NAME`     its own folders, whatever the modes of their parent folders
`/tmp`, `/var/tmp`   a private folder
`/dev/shm`           private memory
`/proc`              no processes of other users (hidepid)

and in a private IPC namespace, since any user can write to shared memory and message queues.

The job's own variables are set after the privileges were dropped. Otherwise BASH_ENV or LD_PRELOAD would act as root.
"""

import hashlib
import hmac
import os
import secrets
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mlcd.clouds.local.teardown import FIRST_USER, USERS

ROOM = Path("/run/mlcd")
"""The folder in which a job sees its own folders."""
TRUST = "MLCD_TRUST_RUNNERS"
"""Set to let jobs of a service's members run as the worker's own user."""
PROCESSES = 16_384
"""Limit of a user's processes and threads, so that a job cannot exhaust those of the machine."""
TOOLS = ("mount", "setpriv", "unshare")
ENTER = """set -e
umask 022
user=$1 room=$2 most=$3; shift 3
mkdir -p "$room"
mount -t tmpfs -o mode=755,size=1m mlcd "$room"
while [ "$1" != -- ]; do  # what the job sees: PATH NAME
    if [ -d "$1" ]; then mkdir "$room/$2"; else touch "$room/$2"; fi
    mount --bind "$1" "$room/$2"
    shift 2
done
shift
closed=() programs=()
while [ "$1" != -- ]; do  # a program in a folder that is closed to others: FOLDER PROGRAM
    mkdir "$room/.program${#programs[@]}"
    mount --bind "$2" "$room/.program${#programs[@]}"
    closed+=("$1") programs+=("$2")
    shift 2
done
shift
for folder in "${closed[@]}"; do mount -t tmpfs -o mode=755,size=1m mlcd "$folder"; done
for i in "${!programs[@]}"; do
    mkdir -p "${programs[i]}"
    mount --bind "$room/.program$i" "${programs[i]}"
    umount "$room/.program$i"
done
mount --bind "$room/tmp" /tmp
mount --bind "$room/tmp" /var/tmp
mount -t tmpfs -o mode=1777 mlcd /dev/shm
mount -t proc -o hidepid=2 mlcd /proc
cd "$room/work"
ulimit -u $most
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"
"""


@dataclass(frozen=True)
class JobUser:
    """The user of a run's jobs. `folder`: contains their own folders. `shown`: other paths that they see, by name."""

    number: int
    folder: Path
    shown: Mapping[str, Path] = field(default_factory=dict)

    def command(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command line, for root, that runs a command as this user and with this environment."""
        own_folders = {name: self.create_private(self.folder / name) for name in ("work", "tmp")}
        folders = {**own_folders, **self.shown}
        pairs = [word for name, path in folders.items() for word in (str(path), name)]
        own = {"HOME": str(ROOM / "work"), "USER": "job", "LOGNAME": "job", "TMPDIR": "/tmp"}
        variables = [f"{name}={value}" for name, value in {**environment, **own}.items()]
        programs = [word for pair in _programs() for word in pair]
        arguments = [str(self.number), str(ROOM), str(PROCESSES), *pairs, "--", *programs, "--"]
        enter = ["bash", "-c", ENTER, "mlcd", *arguments]
        return ["unshare", "--mount", "--ipc", "--propagation", "private", *enter, "env", "-i", *variables, *command]

    def create_private(self, folder: Path) -> Path:
        """Create a folder that only this user can enter."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chown(folder, self.number, self.number)
        return folder


def environment_of_root(mark: str) -> dict[str, str]:
    """The variables of commands that root runs for a job: the launch's mark, and none of the job's."""
    return {"PATH": os.environ.get("PATH", os.defpath), "MLCD_LAUNCH": mark}


def job_user(home: Path, run: str, folder: Path) -> JobUser:
    """The user of a run. Its id is an HMAC of the run's name with a key that only the service can read."""
    number = int.from_bytes(hmac.digest(_key(home), run.encode(), hashlib.sha256)[:8], "big")
    return JobUser(FIRST_USER + number % USERS, folder)


@cache
def why_no_job_user() -> str | None:
    """Why this process cannot run jobs as separate users; None if it can. Checked by trying it."""
    if os.geteuid() != 0:
        return "it is not root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: apt-get install util-linux)"
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        tried = JobUser(FIRST_USER, Path(folder)).command(["true"], {"PATH": os.defpath})
        done = subprocess.run(tried, check=False, capture_output=True, text=True, env=environment_of_root("none"))
    return None if done.returncode == 0 else f"root is confined here: {(done.stderr.splitlines() or ['?'])[-1]}"


def _programs() -> list[tuple[str, str]]:
    """Folders of this interpreter that other users cannot reach, as (the first closed folder above it, the folder)."""
    unreachable = []
    for program in sorted({os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}):
        closed = [each for each in reversed(Path(program).parents) if not each.stat().st_mode & stat.S_IXOTH]
        if closed:
            unreachable.append((str(closed[0]), program))
    return unreachable


def _key(home: Path) -> bytes:
    path, temporary = home / "job-users.key", home / f".job-users.{os.getpid()}"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, secrets.token_bytes(32))
        os.close(descriptor)
        with suppress(FileExistsError):  # another process was faster
            os.link(temporary, path)
        temporary.unlink()
    return path.read_bytes()
