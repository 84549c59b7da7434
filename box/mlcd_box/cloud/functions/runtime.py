"""The Python of the functions: the packages of AWS's runtime, and wheels of those that Lithops installs in its layer.

Functions in a box cannot reach a package index, so pip finds the wheels in a folder. It is built once for each version
of Lithops, from the ordinary package sources.
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
"""Lambda's name of the runtime. Lithops requires the version that it runs with itself."""
BUILT = "built"


@dataclass(frozen=True)
class Runtime:
    """The functions' Python, in its own folder."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def prefixes(self) -> list[Path]:
        """The folders of this host that a function has to see, besides /usr."""
        base = Path(sys.base_prefix).resolve()
        return [self.folder, *([] if base.is_relative_to("/usr") else [base])]

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables by which pip finds the wheels."""
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder / "wheels"), "PIP_NO_CACHE_DIR": "1"}


def runtime() -> Runtime:
    """The functions' Python. It is built first if necessary."""
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
    """The packages that Lithops installs in the layer of its functions."""
    from lithops.serverless.backends.aws_lambda.config import DEFAULT_REQUIREMENTS

    return list(DEFAULT_REQUIREMENTS)
