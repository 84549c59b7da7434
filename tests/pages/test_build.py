"""The pages that are committed are those that their source makes.

`npm run build` checks the types, runs the tests of the pages, builds, and writes down the hashes of what it read and
wrote. So at each change it is enough to compare hashes; at night all of it is done again.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES, STATIC = ROOT / "pages", ROOT / "mlcd" / "service" / "web" / "static"
NIGHT = pytest.mark.night
BUILT = {"build:pages": STATIC, "build:report": ROOT / "mlcd" / "reports" / "static"}


@pytest.fixture
def npm() -> str:
    found = shutil.which("npm")
    if found is None or not (PAGES / "node_modules" / "vite").is_dir():
        pytest.skip("the pages' tools are not here: apt install npm, then npm ci in pages/")
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_last_build_read_what_is_the_source_and_wrote_what_is_committed() -> None:
    lines = (line.split(maxsplit=1) for line in (PAGES / "built.sha256").read_text().splitlines())
    sealed = {(PAGES / path).resolve(): sha256 for sha256, path in lines}
    sources = [
        path
        for pattern in ("src/**/*", "public/**/*", "*.html", "*.json", "*.ts", "*.mjs")
        for path in PAGES.glob(pattern)
    ]
    files = [path for path in [*sources, *STATIC.rglob("*"), *BUILT["build:report"].rglob("*")] if path.is_file()]
    here = {path.resolve(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    changed = {str(path.relative_to(ROOT)) for path, _ in sealed.items() ^ here.items()}
    assert changed == set(), "build them again: make pages"


@NIGHT
@pytest.mark.parametrize(("script", "built"), BUILT.items())
def test_what_is_committed_is_what_the_source_makes(npm: str, tmp_path: Path, script: str, built: Path) -> None:
    command = [npm, "run", "--silent", script, "--", "--outDir", str(tmp_path / "static"), "--logLevel", "error"]
    done = subprocess.run(command, cwd=PAGES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made, committed = contents(tmp_path / "static"), contents(built)
    assert made.keys() == committed.keys()
    assert [name for name in made if made[name] != committed[name]] == [], "build them again: make pages"


@NIGHT
def test_every_type_is_right(npm: str) -> None:
    done = subprocess.run([npm, "run", "--silent", "check"], cwd=PAGES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@NIGHT
def test_the_parts_of_the_pages_do_what_they_say(npm: str) -> None:
    done = subprocess.run([npm, "test", "--silent"], cwd=PAGES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pages_load_nothing_from_elsewhere() -> None:
    for name, content in {**contents(STATIC), **contents(BUILT["build:report"])}.items():
        for scheme in (b'src="http', b'href="http', b"url(http", b'import("http', b"@import"):
            assert scheme not in content, name


def test_no_lock_file_names_where_packages_come_from() -> None:
    assert '"resolved"' not in (PAGES / "package-lock.json").read_text()
