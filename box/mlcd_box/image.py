"""What is built once for a version of SkyPilot, from the ordinary package sources: the image of the machines.

It is laid over this host's /usr, /etc and /var, so it is built anew when the host's Python has changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click

SHELL = Path(__file__).parent / "shell"
CACHE = "MLCD_BOX_CACHE"
"""Variable: the folder in which images are kept."""
BUILT = "built"
"""File in an image that is complete; it says for which host."""


def cache() -> Path:
    """Where the images are, for this version of SkyPilot."""
    folder = os.environ.get(CACHE) or Path.home() / ".cache" / "mlcd-box"
    return Path(folder).expanduser() / f"skypilot-{version('skypilot')}"


def image() -> Path:
    """The image; built, if it is not there, which takes minutes."""
    folder = cache() / "image"
    if (folder / BUILT).exists() and (folder / BUILT).read_text() == _host():
        return folder
    click.echo(f"Building the machines' image in {folder}, once; it takes some minutes ...", err=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wheel, hash = _wheel()
    log = cache() / "build.log"
    command = ["unshare", "-m", "--propagation", "private", "bash", str(SHELL / "build.sh"), str(folder), wheel, hash]
    with log.open("w") as out:
        if subprocess.run(command, stdout=out, stderr=out, check=False).returncode != 0:
            raise click.ClickException(f"the image could not be built; see {log}")
    (folder / BUILT).write_text(_host())
    return folder


def wheels() -> Path:
    """A home in which SkyPilot has built its wheel: without a network it cannot."""
    return cache() / "home"


def _wheel() -> tuple[str, str]:
    """SkyPilot's own wheel, as its client sends it to the machines, and its hash."""
    code = "from sky.backends import wheel_utils as w; path, hash = w.build_sky_wheel(); print('WHEEL', path, hash)"
    wheels().mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HOME": str(wheels())},
        capture_output=True,
        text=True,
        check=False,
    )
    found = next((line.split() for line in done.stdout.splitlines() if line.startswith("WHEEL ")), None)
    if found is None:
        raise click.ClickException(f"SkyPilot's wheel could not be built: {done.stderr.strip()[-300:]}")
    path, hash = Path(found[1]), found[2]
    return str(path if path.suffix == ".whl" else next(path.glob("*.whl"))), hash


def _host() -> str:
    return subprocess.run(["/usr/bin/python3", "--version"], capture_output=True, text=True, check=True).stdout.strip()
