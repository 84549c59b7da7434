"""The wheel holds all that runs, and nothing else; from it alone the demo runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[1]
PACKAGES = ("mlcd", "mlcd_bench", "mlcd_tracker")
SETUPTOOLS = 77
"""The oldest that can build it: `build-system` of pyproject.toml."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network, in a copy of the tree: what setuptools leaves behind is not left there."""
    try:
        installed = version("setuptools")
    except PackageNotFoundError:
        pytest.skip("no setuptools: pip install -e '.[dev]'")
    if int(installed.split(".")[0]) < SETUPTOOLS:
        pytest.skip(f"setuptools {installed} is too old to build the wheel: pip install -e '.[dev]'")
    tree, dist = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "benchmarks"):
        (tree / name).mkdir()
        (tree / name / "__init__.py").touch()
    _run("pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", dist, tree)
    (built,) = dist.glob("mlcd-*.whl")
    return built


def _run(module: str, *arguments: object, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={"PATH": "/usr/bin:/bin", **environment},
        cwd="/",  # where the tree is not found by chance
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path):
    holds = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    assert holds == {str(path.relative_to(ROOT)) for path in there if "__pycache__" not in path.parts}


def test_the_wheel_brings_its_license(wheel: Path):
    with ZipFile(wheel) as opened:
        (place,) = (name for name in opened.namelist() if name.endswith("/licenses/LICENSE"))
        assert opened.read(place) == (ROOT / "LICENSE").read_bytes()


@pytest.mark.night
def test_the_demo_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path):
    """`make wheel-demo` does the same in an empty environment; that needs a network for what MLCD depends on."""
    with ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "installed")
    place = {"PYTHONPATH": str(tmp_path / "installed"), "MLCD_HOME": str(tmp_path / "state")}
    told = _run("mlcd", "train", ROOT / "examples" / "resnet50.yaml", "-y", **place)
    assert "Total with probes: $" in told
    found = subprocess.run(
        [sys.executable, "-c", "import mlcd; print(mlcd.__file__)"],
        env=place,
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(tmp_path))
