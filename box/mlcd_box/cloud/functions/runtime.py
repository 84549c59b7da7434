"""The Python of the functions: what AWS has in its runtime, and wheels of what Lithops installs into its layer.

Functions in a box reach no package index; pip finds what Lithops asks for in a folder. Built once for a version of
Lithops, from the ordinary package sources.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click

from mlcd_box.image import cache

NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""As Lambda names it: Lithops asks for the version that it runs with."""
BUILT = "built"


@dataclass(frozen=True)
class Runtime:
    """In a folder of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def prefixes(self) -> list[Path]:
        """What a function has to see of this host, beside /usr."""
        base = Path(sys.base_prefix).resolve()
        return [self.folder, *([] if base.is_relative_to("/usr") else [base])]

    @property
    def variables(self) -> dict[str, str]:
        """How pip finds the wheels."""
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder / "wheels"), "PIP_NO_CACHE_DIR": "1"}


def runtime() -> Runtime:
    """The functions' Python; built, if it is not there."""
    folder = cache().parent / f"lambda-{NAME}-lithops-{version('lithops')}"
    mark, host = folder / BUILT, str(Path(sys.base_prefix).resolve())
    if mark.exists() and mark.read_text() == host:
        return Runtime(folder)
    click.echo(f"Building the functions' Python in {folder}, once ...", err=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    with (cache().parent / "runtime.log").open("w") as log:
        for command in (
            [sys.executable, "-m", "venv", str(folder / "venv")],
            [*pip, "install", "boto3"],
            [*pip, "wheel", "--wheel-dir", str(folder / "wheels"), *_layer()],
        ):
            if subprocess.run(command, stdout=log, stderr=log, check=False).returncode != 0:
                raise click.ClickException(f"the functions' Python could not be built; see {log.name}")
    mark.write_text(host)
    return Runtime(folder)


def _layer() -> list[str]:
    """What Lithops installs into the layer of its functions."""
    from lithops.serverless.backends.aws_lambda.config import DEFAULT_REQUIREMENTS

    return list(DEFAULT_REQUIREMENTS)
