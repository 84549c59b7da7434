"""The lines of a job's log as people read them: a window of a log of any size, what to find in it, where it fails.

The job writes its log, so it may hold anything. A line is as a terminal shows it last: of a progress bar, which writes
over itself, its last state; colours are left in, every other escape sequence is taken out, and what is not printable is
shown as a symbol. A log is read in pieces, and no piece and no line is large, whatever the job has written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from mlcd.core.database.files import PIECE_BYTES

MOST_LINES = 1_000
MOST_SCANNED = 16 << 20
"""Bytes read for one window, or for one part of a search: where few lines are kept, much is read for them."""
MOST_LINES_SCANNED = 200_000
"""The same in lines, to a piece more: each takes some microseconds, and there are as many in a log as it has bytes."""
LONGEST = 4_000
"""Characters shown of one line."""

_REPORT = re.compile(rb"@mlcd t=[\d.]+ samples=")
_PREFIXES = (
    re.compile(r"^(?:\x1b\[[0-9;]*m)*\((?:[^()]*, )?rank=(\d+), pid=\d+[^()]*\)(?:\x1b\[[0-9;]*m)* ?"),  # SkyPilot's
    re.compile(r"^\[(?:rank|default)(\d+)\]: ?"),  # PyTorch's, and torchrun's
)
_ESCAPES = re.compile(
    r"\x1b(?:"
    r"(\[[0-9;:]*m)"  # a colour: kept
    r"|\[[0-?]*[ -/]*[@-~]?"  # any other control sequence
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link, a device's command
    r"|[ -/]*[0-Z\\-~]?)"
)
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r\x1b"}
_CONTROLS |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_FAILS = re.compile(
    rb"Traceback \(most recent call last\)|(?:^|[\s.])[A-Za-z]*(?:Error|Exception)\b:"
    rb"|\b(?:ERROR|FATAL|CRITICAL|PANIC)\b|^panic: |out of memory|Segmentation fault|core dumped|^Killed$",
    re.MULTILINE,
)


class Log(Protocol):
    """A log of any size."""

    @property
    def size(self) -> int:
        """How many bytes it has now."""

    def read(self, at: int, most: int) -> bytes:
        """At most so many bytes from there."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line. `at`: the byte at which it begins. `rank`: of the process that wrote it, where a prefix of it says so.

    `cut`: how many characters at its end are not shown.
    """

    at: int
    text: str
    rank: int | None = None
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Only:
    """Which lines are asked for. `reports`: also those by which the job tells MLCD how far it is."""

    rank: int | None = None
    reports: bool = False


EVERYTHING = Only()
"""All that a job has written for people."""


@dataclass(frozen=True, slots=True)
class Window:
    """Lines that follow each other, of the bytes from `start` to `next`. A last line that may grow is read again."""

    lines: tuple[Line, ...]
    start: int
    next: int


@dataclass(frozen=True, slots=True)
class Found:
    """Where lines begin that hold what is looked for, in the bytes up to `next`. `done`: the log has no more now."""

    at: tuple[int, ...]
    next: int
    done: bool


def shown(at: int, raw: bytes) -> Line:
    """A line as people read it."""
    text = _last_state(raw).decode(errors="replace")
    rank = None
    for prefix in _PREFIXES:
        if (found := prefix.match(text)) is not None:
            rank, text = int(found[1][:9]), text[found.end() :]
            break
    text = harmless(text).replace("\r", "␍").replace("\n", "␊")
    return Line(at, text[:LONGEST], rank, max(0, len(text) - LONGEST))


def harmless(text: str) -> str:
    """Text that controls no terminal: of escape sequences only colours, and symbols for what is not printable."""
    return _ESCAPES.sub(lambda found: found[0] if found[1] else "", text).translate(_CONTROLS)


def lines_after(log: Log, at: int, only: Only = EVERYTHING, most: int = MOST_LINES) -> Window:
    """The next lines from this byte on, at which a line begins."""
    scan = _Scan(only, at)
    kept = tuple(shown(*each) for each in islice(scan.through(scan.onwards(log)), most))
    return Window(kept, at, scan.next)


def without_colours(text: str) -> str:
    """A line as it is shown, without its colours."""
    return _COLOURS.sub("", text)


def lines_before(log: Log, at: int, only: Only = EVERYTHING, most: int = MOST_LINES) -> Window:
    """The last lines before this byte; before the end, if it is beyond it."""
    at = end = min(at, log.size)
    stop, kept, ends, scanned = max(0, at - MOST_SCANNED), list[tuple[int, bytes]](), at, 0
    while at > stop and len(kept) < most and scanned < MOST_LINES_SCANNED:
        begins = max(0, at - PIECE_BYTES)
        piece = log.read(begins, at - begins)
        if begins > 0 and 0 <= (cut := piece.find(b"\n")) < len(piece) - 1:
            begins, piece = begins + cut + 1, piece[cut + 1 :]
        scan, raws = _Scan(only, begins), list(_split(piece, begins))
        kept[:0] = scan.through(raws)
        scanned += len(raws)
        ends = scan.next if at == end else ends
        at = begins
    if len(kept) > most:
        kept = kept[-most:]
        at = kept[0][0]
    return Window(tuple(shown(*each) for each in kept), at, ends)


def find(log: Log, text: str, at: int, only: Only = EVERYTHING, most: int = MOST_LINES) -> Found:
    """The next lines with this text, capitals or not, from this byte on. Without a text: those that tell of errors."""
    sought = text.lower().encode()
    matches: Callable[[bytes], object] = (lambda raw: sought in raw.lower()) if sought else _FAILS.search
    scan = _Scan(only, at)
    found = (begins for begins, raw in scan.through(scan.onwards(log)) if matches(_plain(raw)))
    first = tuple(islice(found, most))
    return Found(first, scan.next, scan.is_at_end and len(first) < most)


def ranks_in(log: Log) -> tuple[int, ...]:
    """The ranks that prefixes name at the beginning and at the end of a log."""
    ends = (log.read(0, PIECE_BYTES), log.read(max(0, log.size - PIECE_BYTES), PIECE_BYTES))
    ranks = {_rank(raw) for piece in ends for _, raw in _split(piece, 0)}
    return tuple(sorted(rank for rank in ranks if rank is not None))


@dataclass
class _Scan:
    """Goes through lines, and leaves out what is not asked for. `next`: the byte from which one has to read on."""

    only: Only
    next: int
    is_at_end: bool = False

    def through(self, raws: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The lines that are left.

        A report may end a line that is not complete, such as that of a progress bar: the next one writes over it.
        """
        held: tuple[int, bytes] | None = None
        for begins, raw in raws:
            self.next = begins
            if held is not None and not raw.startswith(b"\r"):
                yield held
            held = None
            ends = begins + len(raw) if raw.endswith(b"\n") or len(raw) >= PIECE_BYTES else begins
            if not self.only.reports and (report := _report_in(raw)) is not None:
                before = raw[:report]
                held = (begins, before) if _keeps(self.only, before) and shown(0, before).text.strip() else None
                self.next = ends if held is None else begins
            else:
                self.next = ends
                if _keeps(self.only, raw):
                    yield begins, raw
        if held is not None:
            yield held

    def onwards(self, log: Log) -> Iterator[tuple[int, bytes]]:
        """Where each line begins, and its bytes; a very long one comes in several."""
        at, stop, scanned = self.next, self.next + MOST_SCANNED, 0
        while at < stop and scanned < MOST_LINES_SCANNED:
            piece = log.read(at, PIECE_BYTES)
            if is_last := at + len(piece) >= log.size or not piece:
                self.is_at_end = True
            raws = list(_split(piece, at))
            if not is_last and len(raws) > 1:
                raws = raws if piece.endswith(b"\n") else raws[:-1]
            yield from raws
            scanned += len(raws)
            if is_last:
                return
            at = raws[-1][0] + len(raws[-1][1])


def _keeps(only: Only, raw: bytes) -> bool:
    return only.rank is None or _rank(raw) == only.rank


def _rank(raw: bytes) -> int | None:
    head = raw[:500]
    return shown(0, head).rank if b"rank" in head or b"[default" in head else None  # most lines have no prefix


def _report_in(raw: bytes) -> int | None:
    """Where a report of progress begins that ends this line; a job may have written any number of beginnings."""
    if b"@mlcd t=" not in raw:
        return None
    found = _REPORT.search(raw, raw.rstrip(b"\r\n").rfind(b"\r") + 1)
    return found.start() if found is not None else None


def _split(piece: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The lines with their ends, and where each begins; the last one may have no end."""
    begins = 0
    while begins < len(piece):
        ends = piece.find(b"\n", begins) + 1 or len(piece)
        yield at + begins, piece[begins:ends]
        begins = ends


def _last_state(raw: bytes) -> bytes:
    """What is left of a line that writes over itself."""
    line = raw.rstrip(b"\r\n")
    return line[line.rfind(b"\r") + 1 :]


def _plain(raw: bytes) -> bytes:
    """What is looked through: of most lines, all of it as it is."""
    return without_colours(shown(0, raw).text).encode() if b"\x1b" in raw or b"\r" in raw else raw
