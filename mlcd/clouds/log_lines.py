"""Reads the lines of a job's log for display: a window of a log of any size, a text search, a search for errors.

The job writes its log, so it may contain anything. A line is shown as a terminal would show it in the end: a progress
bar in its last state, with colours, without other escape sequences, and with symbols for unprintable characters. A log
is read in pieces, so that memory and time stay bounded whatever the job has written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from mlcd.core.database.files import PIECE_BYTES

MAX_LINES = 1_000
MAX_SCANNED_BYTES = 16 << 20
"""Bytes read for one window or one part of a search: a filter may keep few of the lines that are read."""
MAX_SCANNED_LINES = 200_000
"""The same limit in lines (to the end of a piece): a line takes some microseconds, and a line may be a single byte."""
MAX_SHOWN_CHARACTERS = 4_000
"""Characters displayed of one line."""

_REPORT = re.compile(rb"@mlcd t=[\d.]+ samples=")
_PREFIXES = (
    re.compile(r"^(?:\x1b\[[0-9;]*m)*\((?:[^()]*, )?rank=(\d+), pid=\d+[^()]*\)(?:\x1b\[[0-9;]*m)* ?"),  # SkyPilot's
    re.compile(r"^\[(?:rank|default)(\d+)\]: ?"),  # PyTorch's, and torchrun's
)
_ESCAPES = re.compile(
    r"\x1b(?:"
    r"(\[[0-9;:]*m)"  # a colour, which is kept
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
        """Its size in bytes now."""

    def read(self, at: int, most: int) -> bytes:
        """At most `most` bytes from position `at`."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line. `at`: the byte at which it begins. `rank`: of the process that wrote it, if the line's prefix names it.

    `cut`: how many characters at its end are left out.
    """

    at: int
    text: str
    rank: int | None = None
    cut: int = 0


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Which lines to keep. `rank`: only those of this rank. `reports`: keep the tracker's progress reports, too."""

    rank: int | None = None
    reports: bool = False


WITHOUT_REPORTS = LineFilter()
"""Everything but the tracker's progress reports, which are for MLCD and not for people."""


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines: those of the bytes from `start` to `next`. A last line that may still grow is after `next`."""

    lines: tuple[Line, ...]
    start: int
    next: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The positions of matching lines in the bytes up to `next`. `done`: the search has reached the end of the log."""

    at: tuple[int, ...]
    next: int
    done: bool


def displayed(at: int, raw: bytes) -> Line:
    """The line of these bytes, as it is displayed."""
    text = _last_state(raw).decode(errors="replace")
    rank = None
    for prefix in _PREFIXES:
        if (match := prefix.match(text)) is not None:
            rank, text = int(match[1][:9]), text[match.end() :]
            break
    text = sanitized(text).replace("\r", "␍").replace("\n", "␊")
    return Line(at, text[:MAX_SHOWN_CHARACTERS], rank, max(0, len(text) - MAX_SHOWN_CHARACTERS))


def sanitized(text: str) -> str:
    """Text that is safe to print: no escape sequences but colours, and symbols for unprintable characters."""
    return _ESCAPES.sub(lambda escape: escape[0] if escape[1] else "", text).translate(_CONTROLS)


def lines_after(log: Log, at: int, only: LineFilter = WITHOUT_REPORTS, most: int = MAX_LINES) -> Window:
    """The next lines from byte `at`, where a line begins."""
    scan = _Scan(only, at)
    lines = tuple(displayed(*each) for each in islice(scan.through(scan.onwards(log)), most))
    return Window(lines, at, scan.next)


def without_colours(text: str) -> str:
    """A displayed line, without its colours."""
    return _COLOURS.sub("", text)


def lines_before(log: Log, at: int, only: LineFilter = WITHOUT_REPORTS, most: int = MAX_LINES) -> Window:
    """The last lines before byte `at`, or before the end of the log."""
    at = end = min(at, log.size)
    stop, kept, ends, scanned = max(0, at - MAX_SCANNED_BYTES), list[tuple[int, bytes]](), at, 0
    while at > stop and len(kept) < most and scanned < MAX_SCANNED_LINES:
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
    return Window(tuple(displayed(*each) for each in kept), at, ends)


def find(log: Log, text: str, at: int, only: LineFilter = WITHOUT_REPORTS, most: int = MAX_LINES) -> SearchResult:
    """The next lines from byte `at` that contain this text, ignoring case. Without a text: those that report errors."""
    wanted = text.lower().encode()
    matches: Callable[[bytes], object] = (lambda raw: wanted in raw.lower()) if wanted else _FAILS.search
    scan = _Scan(only, at)
    positions = (begins for begins, raw in scan.through(scan.onwards(log)) if matches(_plain(raw)))
    first = tuple(islice(positions, most))
    return SearchResult(first, scan.next, scan.is_at_end and len(first) < most)


def ranks_in(log: Log) -> tuple[int, ...]:
    """The ranks that are named in line prefixes at the beginning and the end of a log."""
    ends = (log.read(0, PIECE_BYTES), log.read(max(0, log.size - PIECE_BYTES), PIECE_BYTES))
    ranks = {_rank(raw) for piece in ends for _, raw in _split(piece, 0)}
    return tuple(sorted(rank for rank in ranks if rank is not None))


@dataclass
class _Scan:
    """Filters lines. `next`: the byte from which the next scan has to continue."""

    only: LineFilter
    next: int
    is_at_end: bool = False

    def through(self, raws: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The lines that the filter keeps.

        A report may follow an incomplete line, such as a progress bar's. That part is kept unless the next line
        overwrites it.
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
                held = (begins, before) if _keeps(self.only, before) and displayed(0, before).text.strip() else None
                self.next = ends if held is None else begins
            else:
                self.next = ends
                if _keeps(self.only, raw):
                    yield begins, raw
        if held is not None:
            yield held

    def onwards(self, log: Log) -> Iterator[tuple[int, bytes]]:
        """The position and the bytes of each line; a very long line is returned in several parts."""
        at, stop, scanned = self.next, self.next + MAX_SCANNED_BYTES, 0
        while at < stop and scanned < MAX_SCANNED_LINES:
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


def _keeps(only: LineFilter, raw: bytes) -> bool:
    return only.rank is None or _rank(raw) == only.rank


def _rank(raw: bytes) -> int | None:
    head = raw[:500]
    return displayed(0, head).rank if b"rank" in head or b"[default" in head else None  # most lines have no prefix


def _report_in(raw: bytes) -> int | None:
    """The position of a progress report in this line, if it has one. Only the line's last state is searched."""
    if b"@mlcd t=" not in raw:
        return None
    report = _REPORT.search(raw, raw.rstrip(b"\r\n").rfind(b"\r") + 1)
    return report.start() if report is not None else None


def _split(piece: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The position and the bytes of each line, with its line end; the last line may have none."""
    begins = 0
    while begins < len(piece):
        ends = piece.find(b"\n", begins) + 1 or len(piece)
        yield at + begins, piece[begins:ends]
        begins = ends


def _last_state(raw: bytes) -> bytes:
    """The visible part of a line that overwrites itself with carriage returns."""
    line = raw.rstrip(b"\r\n")
    return line[line.rfind(b"\r") + 1 :]


def _plain(raw: bytes) -> bytes:
    """The text to search: most lines as they are; without escape sequences and overwritten parts if there are any."""
    return without_colours(displayed(0, raw).text).encode() if b"\x1b" in raw or b"\r" in raw else raw
