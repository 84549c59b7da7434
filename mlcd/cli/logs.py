"""mlcd logs: what a job has written."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import click

from mlcd.cli.options import open_ledger, output, parsed_by, run_name
from mlcd.cli.server import chosen_server
from mlcd.clouds.launches import Launches, launches_here
from mlcd.clouds.log_lines import displayed, ranks_in, sanitized, without_colours
from mlcd.core.clock import WallClock
from mlcd.core.errors import UserError
from mlcd.core.pattern import compile_pattern
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.requests import log_parts
from mlcd.service.remote.requests import logs as remote_logs
from mlcd.service.remote.server import Server

_CUT_ESCAPE = re.compile(r"\x1b[^\x1b]{0,32}$")


@click.command()
@run_name
@click.argument("probe", required=False, type=click.IntRange(1))
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the launch is over.")
@click.option("--launch", type=click.IntRange(1), help="The same as PROBE.")
@click.option(
    "--rank",
    "--process",
    type=click.IntRange(0),
    help="Only what this rank has written: a process of the job, or a rank that the lines of its log name.",
)
@click.option(
    "--grep",
    metavar="PATTERN",
    callback=parsed_by(compile_pattern),
    help="Only lines that match this pattern (RE2).",
)
@output
def logs(
    run: str,
    probe: int | None,
    follow: bool,
    launch: int | None,
    rank: int | None,
    grep: re.Pattern[str] | None,
    output: str,
) -> None:
    """The output of the job itself, of a run on real machines.

    PROBE is the number of a launch, as in `mlcd ledger`; the newest.

    \b
    mlcd logs -f last
    mlcd logs last 3 --rank 1 --grep 'loss|Error'
    """
    probe = probe or launch
    server = chosen_server()
    kept = _here(run, probe) if server is None else _there(server, run, probe)
    process, named = _source(kept, rank)
    pieces = kept.read(process, follow)
    if output == "json" or grep is not None or named is not None:
        pieces = _chosen(pieces, named, grep, output == "json")
    elif sys.stdout.isatty():
        pieces = _safe(pieces)
    silent = True
    for piece in pieces:
        silent = False
        sys.stdout.write(piece)
        sys.stdout.flush()
    if silent and output != "json":
        nothing = f"No line of {f'launch {probe}' if probe else 'the newest launch'} matches."
        click.echo("Nothing was written so far." if grep is None and named is None else nothing, err=True)


class Kept(Protocol):
    """The logs of one launch."""

    def parts(self) -> tuple[list[int], list[int]]:
        """Its processes that have a log, and the ranks that the log of the first one names."""

    def read(self, process: int, follow: bool) -> Iterator[str]:
        """What a process has written; with `follow`, until the launch is over."""


@dataclass(frozen=True)
class Here:
    """Of a launch on this machine; no folder, if there is no such launch."""

    name: str
    launches: Launches
    folder: Path | None

    def parts(self) -> tuple[list[int], list[int]]:
        """From its folder."""
        logs = sorted(self.folder.glob("[0-9]*.log")) if self.folder is not None else []
        first = [log for log in logs if log.name == "0.log"]
        return [int(log.stem) for log in logs], [rank for log in first for rank in ranks_in(OnDisk(log))]

    def read(self, process: int, follow: bool) -> Iterator[str]:
        """From its file."""
        with suppress(FileNotFoundError):
            if self.folder is not None:
                yield from self.launches.read(self.folder, process, WallClock(datetime.now(UTC)) if follow else None)
                return
        raise UserError(
            f"run '{self.name}' has no such log; logs are kept of launches on real machines: mlcd ledger {self.name}"
        )


@dataclass(frozen=True)
class There:
    """Of a launch of a service."""

    server: Server
    name: str
    launch: int | None

    def parts(self) -> tuple[list[int], list[int]]:
        """As the service says."""
        return log_parts(self.server, self.name, self.launch)

    def read(self, process: int, follow: bool) -> Iterator[str]:
        """Piece by piece."""
        return remote_logs(self.server, self.name, self.launch, process, follow)


@dataclass(frozen=True)
class OnDisk:
    """A log that is a file."""

    path: Path

    @property
    def size(self) -> int:
        """How many bytes it has now."""
        return self.path.stat().st_size

    def read(self, at: int, most: int) -> bytes:
        """At most so many bytes from there."""
        with self.path.open("rb") as file:
            file.seek(at)
            return file.read(most)


def _here(run: str, number: int | None) -> Kept:
    ledger, stored = open_ledger(), launches_here()
    name = ledger.find(run)
    numbers = [number] if number is not None else range(ledger.account(name).orders, 0, -1)
    folders = (stored.find(f"{name}-{each}") for each in numbers)
    return Here(name, stored, next((folder for folder in folders if folder is not None), None))


def _there(server: Server, run: str, number: int | None) -> Kept:
    return There(server, RemoteLedger(server).find(run), number)


def _source(kept: Kept, rank: int | None) -> tuple[int, int | None]:
    """The process whose log to read, and the rank whose lines to take of it; None: all of them."""
    if rank is None:
        return 0, None
    processes, ranks = kept.parts()
    if rank in ranks and processes == [0]:
        return 0, rank
    return rank, None


def _chosen(pieces: Iterator[str], rank: int | None, grep: re.Pattern[str] | None, as_json: bool) -> Iterator[str]:
    """The lines that are asked for, as people read them."""
    for raw in _lines(pieces):
        line = displayed(0, raw.encode())
        if (rank is None or line.rank == rank) and (grep is None or grep.search(without_colours(line.text))):
            text = line.text if sys.stdout.isatty() else without_colours(line.text)
            yield f"{json.dumps({'rank': line.rank, 'text': text})}\n" if as_json else f"{text}\n"


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    rest = ""
    for piece in pieces:
        *whole, rest = (rest + piece).split("\n")
        yield from whole
    if rest:
        yield rest


def _safe(pieces: Iterator[str]) -> Iterator[str]:
    """What may go to a terminal: a job must not control it."""
    rest = ""
    for piece in pieces:
        text = rest + piece
        rest = cut[0] if (cut := _CUT_ESCAPE.search(text)) is not None else ""
        yield sanitized(text[: len(text) - len(rest)])
    if rest:
        yield sanitized(rest)
