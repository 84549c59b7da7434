"""A user of its own for a run that came through a service: its jobs can read nothing of the service's.

The service has to be root. Each command of such a job runs as a user whose number belongs to that run alone, without
any privilege or a way to get one (`setpriv`), in a mount namespace where it sees

`/run/mlcd/NAME`     the few folders that are its own, whatever the modes of the folders above them
`/tmp`, `/var/tmp`   a folder of its own
`/dev/shm`           memory that goes with it
`/proc`              no processes of others (hidepid)

and in an IPC namespace of its own: what every user may write to, jobs would else share.

What the job says of its environment is set after the privileges are gone: BASH_ENV or LD_PRELOAD would else be root's.
"""

from __future__ import annotations

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
"""Where a job finds its folders."""
TRUST = "MLCD_TRUST_RUNNERS"
"""Set where jobs of a service's members may run as whoever drives them."""
PROCESSES = 16_384
"""Processes and threads of a user: more would leave none to the machine."""
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
    """The user of a run's jobs. `folder`: where what is theirs is kept. `shown`: what they see besides, by its name."""

    number: int
    folder: Path
    shown: Mapping[str, Path] = field(default_factory=dict)

    def command(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command line, for root, that runs a command as this user and with this environment."""
        folders = {"work": self.own("work"), "tmp": self.own("tmp"), **self.shown}
        pairs = [word for name, path in folders.items() for word in (str(path), name)]
        own = {"HOME": str(ROOM / "work"), "USER": "job", "LOGNAME": "job", "TMPDIR": "/tmp"}
        variables = [f"{name}={value}" for name, value in {**environment, **own}.items()]
        programs = [word for pair in _programs() for word in pair]
        terms = [str(self.number), str(ROOM), str(PROCESSES), *pairs, "--", *programs, "--"]
        enter = ["bash", "-c", ENTER, "mlcd", *terms]
        return ["unshare", "--mount", "--ipc", "--propagation", "private", *enter, "env", "-i", *variables, *command]

    def own(self, name: str) -> Path:
        """A folder that belongs to this user, made if it is not there."""
        return self.give(self.folder / name)

    def give(self, folder: Path) -> Path:
        """Make a folder this user's, and nobody else's."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chown(folder, self.number, self.number)
        return folder


def environment_of_root(mark: str) -> dict[str, str]:
    """What the commands get that root runs for a job: the mark by which they are found, and nothing of the job's."""
    return {"PATH": os.environ.get("PATH", os.defpath), "MLCD_LAUNCH": mark}


def job_user(home: Path, run: str, folder: Path) -> JobUser:
    """The user of a run: its number is drawn from the run's name and a key that nobody else can read."""
    number = int.from_bytes(hmac.digest(_key(home), run.encode(), hashlib.sha256)[:8], "big")
    return JobUser(FIRST_USER + number % USERS, folder)


@cache
def why_no_job_user() -> str | None:
    """What keeps this process from running jobs as users of their own, or None. It is tried."""
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
    """Of this interpreter, the folders that others could not reach, such as one below /root, with what closes them."""
    found = []
    for program in sorted({os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}):
        above = [each for each in reversed(Path(program).parents) if not each.stat().st_mode & stat.S_IXOTH]
        if above:
            found.append((str(above[0]), program))
    return found


def _key(home: Path) -> bytes:
    path, beside = home / "job-users.key", home / f".job-users.{os.getpid()}"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, secrets.token_bytes(32))
        os.close(descriptor)
        with suppress(FileExistsError):  # another process was faster
            os.link(beside, path)
        beside.unlink()
    return path.read_bytes()
