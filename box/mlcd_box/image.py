"""Builds the image of the machines, once for each version of SkyPilot, from the ordinary package sources.

It is an overlay over this host's /usr, /etc and /var. Its folder's name contains a hash of everything that it is built
from, so it is rebuilt after a change, and two working trees never share a wrong image.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click

from mlcd.clouds.serving.remote_setup import requirements

SHELL = Path(__file__).parent / "shell"
CACHE = "MLCD_BOX_CACHE"
"""Environment variable with the folder for images."""
BUILT = "built"
"""This file in an image shows that it is complete."""


def cache() -> Path:
    """The folder with the images for this version of SkyPilot."""
    folder = os.environ.get(CACHE) or Path.home() / ".cache" / "mlcd-box"
    return Path(folder).expanduser() / f"skypilot-{version('skypilot')}"


def image() -> Path:
    """The folder of the image. It is built first if necessary, which takes minutes."""
    folder = cache() / f"image-{_content_hash()}"
    if (folder / BUILT).exists():
        return folder
    click.echo(f"Building the machines' image in {folder}, once; it takes some minutes ...", err=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wheel, hash = _wheel()
    log, needs = cache() / "build.log", cache() / "requirements.txt"
    needs.write_text("\n".join(requirements()))
    build = ["bash", str(SHELL / "build.sh"), str(folder), wheel, hash, str(needs)]
    command = ["unshare", "-m", "--propagation", "private", *build]
    with log.open("w") as out:
        if subprocess.run(command, stdout=out, stderr=out, check=False).returncode != 0:
            raise click.ClickException(f"the image could not be built; see {log}")
    (folder / BUILT).touch()
    return folder


def wheels() -> Path:
    """A home folder in which SkyPilot has built its wheel, which it cannot do in a box, without a network."""
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
    words = next((line.split() for line in done.stdout.splitlines() if line.startswith("WHEEL ")), None)
    if words is None:
        raise click.ClickException(f"SkyPilot's wheel could not be built: {done.stderr.strip()[-300:]}")
    path, hash = Path(words[1]), words[2]
    return str(path if path.suffix == ".whl" else next(path.glob("*.whl"))), hash


def _content_hash() -> str:
    """A hash of everything that the image is built from, besides SkyPilot."""
    host = subprocess.run(["/usr/bin/python3", "--version"], capture_output=True, check=True).stdout
    scripts = [path.read_bytes() for path in sorted(SHELL.rglob("*")) if path.is_file() and path.name != "boot.sh"]
    return hashlib.sha256(b"\0".join([host, *scripts, "\n".join(requirements()).encode()])).hexdigest()[:12]
