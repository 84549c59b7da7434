"""What pages show after `$ mlcd ...`, typed again: where all is simulated or replayed, the same must come.

`python tests/docs/typed_pages.py` writes what comes into the pages, once a method or a word has changed.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT

ROOT = Path(__file__).parents[2]
STORIES = (
    ("docs/tutorial.md", "docs/howto/read-the-ledger.md"),
    ("README.md",),
    ("docs/howto/scale.md", "docs/reference/cli.md"),
)
"""Pages that are typed one after the other, with one state."""
HERE_ALONE = ("mlcd check", "^C", "update entries")
"""What differs from one machine or moment to the next: not typed."""
VARIES = r"\d{4}-\d\d-\d\d \d\d:\d\d|\(\d+ kB\)"


@dataclass(frozen=True)
class Typed:
    """A command of a page, what the page shows and what came."""

    command: str
    shown: str
    came: str

    @property
    def is_same(self) -> bool:
        """`...` on a line of its own stands for lines that are left out; clocks and sizes may differ."""
        lines = [
            r"(?:.*\n)*?" if line == "..." else re.escape(_plain(line)) + r"\n" for line in self.shown.splitlines()
        ]
        return re.fullmatch("".join(lines), "".join(f"{_plain(line)}\n" for line in self.came.splitlines())) is not None

    @property
    def anew(self) -> str:
        """What the page is to show: before what is left out as many lines as ever, after it from the same word on."""
        came = [line.rstrip() for line in self.came.splitlines()]
        before, dots, after = self.shown.partition("...\n")
        if not dots:
            return "".join(f"{line}\n" for line in came)
        word = (after.split() or [""])[0]
        begins = [number for number, line in enumerate(came) if word and line.split()[:1] == [word]]
        tail = begins[-1] if begins else len(came) - len(after.splitlines())
        return "".join(f"{line}\n" for line in (*came[: len(before.splitlines())], "...", *came[tail:]))


def _plain(line: str) -> str:
    return re.sub(VARIES, "VARIES", line.rstrip())


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each command that can be typed, and what is shown below it."""
    for block in re.findall(r"(?ms)^```\n(\$ .*?)^```", text):
        if any(words in block for words in HERE_ALONE):
            continue
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def typed(page: Path, folder: Path) -> Iterator[Typed]:
    """Type what a page shows, in a folder with the examples and a state of its own."""
    text = page.read_text(encoding="utf-8")
    for name, lines in re.findall(r"`([\w./-]+\.(?:yaml|csv))`:\n\n((?:    .*\n)+|```yaml\n(?:.*\n)*?```\n)", text):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        marks = r"^```.*\n" if lines.startswith("```") else r"^    "
        file.write_text(re.sub(marks, "", lines, flags=re.MULTILINE), encoding="utf-8")
    code = 0
    with chdir(folder):
        for command, shown in blocks(text):
            program, *words = shlex.split(command)
            if any(word.endswith(".yaml") and not Path(word).exists() for word in words):
                continue  # the reader's own file
            if program == "mlcd":
                code, came = _type(words)
            elif program == "sqlite3" and _reads_json():
                code, came = _ask(program, *words)
            elif command == "echo $?":
                came = f"{code}\n"
            else:
                continue
            yield Typed(command, shown, came)


def _reads_json() -> bool:
    """Whether there is an sqlite3 that is new enough for the queries, 3.38."""
    if shutil.which("sqlite3") is None:
        return False
    version = subprocess.run(["sqlite3", "--version"], stdout=PIPE, text=True, timeout=60, check=True).stdout
    return tuple(int(part) for part in version.split()[0].split(".")[:2]) >= (3, 38)


def _ask(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        words, cwd=os.environ["MLCD_HOME"], stdout=PIPE, stderr=STDOUT, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout


def _type(arguments: list[str]) -> tuple[int, str]:
    from mlcd.cli import main

    screen = io.StringIO()
    with redirect_stdout(screen), redirect_stderr(screen):
        try:
            main(arguments)
        except SystemExit as ended:
            return int(ended.code or 0), screen.getvalue()
    raise AssertionError("main always exits")


def story(pages: tuple[str, ...]) -> Iterator[tuple[Path, Typed]]:
    """Pages typed one after the other; `MLCD_HOME` is theirs until the end."""
    with tempfile.TemporaryDirectory() as empty:
        os.environ["MLCD_HOME"] = f"{empty}/state"
        (Path(empty) / "examples").symlink_to(ROOT / "examples")
        for page in pages:
            yield from ((ROOT / page, each) for each in typed(ROOT / page, Path(empty)))


if __name__ == "__main__":
    for pages in STORIES:
        for path, one in list(story(pages)):
            if not one.is_same:
                print(f"{path.relative_to(ROOT)}: $ {one.command}")
                told, shown = path.read_text(encoding="utf-8"), f"$ {one.command}\n{one.shown}"
                assert told.count(shown) == 1, f"{one.command}: shown twice, alike"
                path.write_text(told.replace(shown, f"$ {one.command}\n{one.anew}"), encoding="utf-8")
