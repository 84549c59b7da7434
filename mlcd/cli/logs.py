"""mlcd logs: the output of the job itself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
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
MOST_RANKS = 20
"""Ranks listed in an error."""


@click.command()
@run_name
@click.argument("probe", required=False, type=click.IntRange(1))
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the launch is over.")
@click.option("--launch", type=click.IntRange(1), help="The same as PROBE.")
@click.option(
    "--rank",
    "--process",
    type=click.IntRange(0),
    help="Only lines of this rank: a process of the job, or a rank that prefixes of the lines name.",
)
@click.option(
    "--grep",
    metavar="PATTERN",
    callback=parsed_by(compile_pattern),
    help="Only lines that match this regular expression (RE2 syntax).",
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
    """Print the output of the job itself, of a run on real machines.

    PROBE is the number of a launch: its place among the `reserved` entries of `mlcd ledger`. Default: the newest.

    \b
    mlcd logs -f last
    mlcd logs last 3 --rank 1 --grep 'loss|Error'
    """
    number, server = probe or launch, chosen_server()
    stored = _local_logs(run, number) if server is None else _remote_logs(server, run, number)
    process, line_rank = _source(stored, rank, follow)
    pieces = stored.read(process, follow)
    if output == "json" or grep is not None or line_rank is not None:
        pieces = _matching_lines(pieces, line_rank, grep, output == "json")
    elif sys.stdout.isatty():
        pieces = _safe(pieces)
    silent = True
    for piece in pieces:
        silent = False
        sys.stdout.write(piece)
        sys.stdout.flush()
    if silent and output != "json":
        no_match = f"No line of {f'launch {number}' if number else 'the newest launch'} matches."
        click.echo("Nothing was written so far." if grep is None and line_rank is None else no_match, err=True)


class LaunchLogs(Protocol):
    """The logs of one launch."""

    @property
    def run(self) -> str:
        """The name of its run."""

    def parts(self) -> tuple[list[int], list[int]]:
        """The processes that have a log, and the ranks that prefixes of lines name in the log of process 0."""

    def read(self, process: int, follow: bool) -> Iterator[str]:
        """The output of a process; with `follow`, until the launch is over."""


@dataclass(frozen=True)
class LocalLogs:
    """The logs of a launch on this machine; `folder` is None if there is no such launch."""

    run: str
    launches: Launches
    folder: Path | None

    def parts(self) -> tuple[list[int], list[int]]:
        """As the files in its folder say."""
        logs = sorted(self.folder.glob("[0-9]*.log")) if self.folder is not None else []
        processes = sorted(int(log.stem) for log in logs if log.stem.isdecimal())
        return processes, [rank for log in logs if log.name == "0.log" for rank in ranks_in(LogFile(log))]

    def read(self, process: int, follow: bool) -> Iterator[str]:
        """From its file."""
        with suppress(FileNotFoundError):
            if self.folder is not None:
                yield from self.launches.read(self.folder, process, WallClock(datetime.now(UTC)) if follow else None)
                return
        _check_rank(self, process)
        raise UserError(
            f"run '{self.run}' has no such log; only launches on real machines have logs. Its launches: "
            f"mlcd ledger {self.run}"
        )


@dataclass(frozen=True)
class RemoteLogs:
    """The logs of a launch of a service."""

    run: str
    server: Server
    launch: int | None

    def parts(self) -> tuple[list[int], list[int]]:
        """As the service says."""
        return log_parts(self.server, self.run, self.launch)

    def read(self, process: int, follow: bool) -> Iterator[str]:
        """Piece by piece."""
        return remote_logs(self.server, self.run, self.launch, process, follow)


@dataclass(frozen=True)
class LogFile:
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


def _local_logs(run: str, number: int | None) -> LaunchLogs:
    ledger, launches = open_ledger(), launches_here()
    name = ledger.find(run)
    numbers = [number] if number is not None else range(ledger.account(name).orders, 0, -1)
    folders = (launches.find(f"{name}-{each}") for each in numbers)
    return LocalLogs(name, launches, next((folder for folder in folders if folder is not None), None))


def _remote_logs(server: Server, run: str, number: int | None) -> LaunchLogs:
    return RemoteLogs(RemoteLedger(server).find(run), server, number)


def _source(logs: LaunchLogs, rank: int | None, follow: bool) -> tuple[int, int | None]:
    """The process whose log to read, and the rank whose lines to take from it; None: all lines."""
    if rank is None:
        return 0, None
    processes, ranks = logs.parts()
    if rank in ranks and processes == [0]:
        return 0, rank
    if not follow:  # who follows waits: the process may be about to start
        _check_rank(logs, rank)
    return rank, None


def _check_rank(logs: LaunchLogs, rank: int) -> None:
    """Refuse a rank that the launch does not have, unless none has written yet."""
    processes, ranks = logs.parts()
    known = sorted({*processes, *(ranks if processes == [0] else ())})
    if known and rank not in known:
        raise UserError(
            f"this launch of run '{logs.run}' has no rank {rank}; it has: {_rank_words(known)}. "
            f"All launches: mlcd ledger {logs.run}"
        )


def _rank_words(ranks: Sequence[int]) -> str:
    """'0 to 7' where none is missing; else '0, 1, 4'."""
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]} to {ranks[-1]}"
    more = f" and {len(ranks) - MOST_RANKS} more" if len(ranks) > MOST_RANKS else ""
    return ", ".join(map(str, ranks[:MOST_RANKS])) + more


def _matching_lines(
    pieces: Iterator[str], rank: int | None, grep: re.Pattern[str] | None, as_json: bool
) -> Iterator[str]:
    """The lines of this rank that match the pattern, as people read them."""
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
    """The output without what would control the terminal, such as escape sequences that are not colours."""
    rest = ""
    for piece in pieces:
        text = rest + piece
        rest = cut[0] if (cut := _CUT_ESCAPE.search(text)) is not None else ""
        yield sanitized(text[: len(text) - len(rest)])
    if rest:
        yield sanitized(rest)
