"""Writes the fixtures, each with the code of its time: python tests/ledger/formats/write.py [FOLDER ...]

Needs the git history. For each format its commit is checked out, its own `mlcd` is given the commands of `orders.py`,
and what it left in its state folder is kept: the ledger as SQL, other files as they are.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from signal import SIGINT, SIGKILL
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> None:
    """Write the folders of these names, or all."""
    from orders import FORMATS

    for form in FORMATS:
        if not names or form.folder in names:
            with TemporaryDirectory() as temporary:
                code = Path(temporary) / "code"
                subprocess.run(["git", "worktree", "add", "-q", "--detach", code, form.commit], cwd=HERE, check=True)
                try:
                    write(form, code, Path(temporary) / "work")
                finally:
                    subprocess.run(["git", "worktree", "remove", "--force", code], cwd=HERE, check=True)


def write(form, code: Path, work: Path) -> None:
    """Give the commands one after the other, then keep what is there."""
    shutil.copytree(HERE / "inputs", work / "inputs")
    home = work / "home"
    settings = {"PATH": os.environ["PATH"], "HOME": str(work), "MLCD_HOME": str(home), "PYTHONPATH": str(code)}
    for order in form.orders:
        (work / "job.yaml").write_text(f"name: {order.name}\n{order.job.lstrip()}")
        purpose, most = order.killed or order.interrupted or ("never", 0)
        by = SIGKILL if order.killed else SIGINT
        command = [sys.executable, "-P", __file__, "--one", str(by.value), purpose, str(most), *order.words]
        done = subprocess.run(command, cwd=work, env=settings, capture_output=True, text=True)
        expected = {-SIGKILL} if order.killed else {2} if order.interrupted else {0, 1, 3}
        if done.returncode not in expected:
            raise SystemExit(f"{form.folder}, {order.name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    if form.rare:
        subprocess.run([sys.executable, "-P", HERE / "rare.py"], cwd=work, env=settings, check=True)
    keep(work, home, HERE / form.folder)


def keep(work: Path, home: Path, folder: Path) -> None:
    """The state folder as a fixture; PLACE stands for where it was written."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(home, folder, ignore=shutil.ignore_patterns("ledger.db*", "locks", "tracker", "quantised"))
    with closing(sqlite3.connect(home / "ledger.db")) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        dump = "\n".join(db.iterdump()).replace(str(work), "PLACE")
    sql = f"{dump}\nPRAGMA user_version = {version};\n"
    (folder / "ledger.sql.gz").write_bytes(gzip.compress(sql.encode(), mtime=0))


def one(signal: int, purpose: str, most: int, words: list[str]) -> None:
    """One command with the code on the path, ended by a signal once so many launches of this purpose are set aside."""
    from mlcd.cli import main as mlcd
    from mlcd.core.ledger import Book

    reserved, as_it_is = 0, Book.write

    def write_and_die(book, *entries) -> None:
        nonlocal reserved
        as_it_is(book, *entries)
        reserved += sum(entry.kind == "reserved" and entry.launch.purpose == purpose for entry in entries)
        if purpose != "never" and reserved >= most:
            reserved = -sys.maxsize  # once: a second Ctrl-C means something else
            os.kill(os.getpid(), signal)

    Book.write = write_and_die
    mlcd(words)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
    else:
        main(sys.argv[1:])
