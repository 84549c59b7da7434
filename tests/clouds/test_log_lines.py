"""Reading and searching a job's log for display, whatever it contains and however large it is."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.log_lines import (
    MAX_SHOWN_CHARACTERS,
    WITHOUT_REPORTS,
    LineFilter,
    Log,
    displayed,
    find,
    lines_after,
    lines_before,
    ranks_in,
)
from mlcd.core.database.files import PIECE_BYTES

ALL = LineFilter(reports=True)


@dataclass
class Written:
    """A log in memory."""

    body: bytes

    @property
    def size(self) -> int:
        return len(self.body)

    def read(self, at: int, most: int) -> bytes:
        return self.body[at : at + most]


@dataclass
class OnDisk:
    path: Path
    most_read: int = 0

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def read(self, at: int, most: int) -> bytes:
        self.most_read = max(self.most_read, most)
        with self.path.open("rb") as file:
            file.seek(at)
            return file.read(most)


def texts(log: Log, only: LineFilter = WITHOUT_REPORTS) -> list[str]:
    return [line.text for line in lines_after(log, 0, only).lines]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"plain\r\n", "plain"),
        (b"\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m"),
        (b" 10%\r 50%\r100%\r\n", "100%"),
        (b"a\x1b[2Jb\x1b[?25lc\x1b[10;3Hd\x1bMe\x1b(Bf\n", "abcdef"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq\x1b\\c\n", "abc"),
        (b"a\0b\x08c\x07\n", "a␀b␈c␇"),
        (b"tab\tstays\n", "tab\tstays"),
        (b"\xff\xfe good \xc3\xa9\n", "\ufffd\ufffd good é"),
        (b"\xc2\x9b31m\n", "\ufffd31m"),
        (b"<script>alert(1)</script>\n", "<script>alert(1)</script>"),
        (b"\x1b[31", ""),
    ],
)
def test_a_line_is_shown_as_a_terminal_shows_it_in_the_end(written: bytes, read: str) -> None:
    assert displayed(0, written).text == read


@pytest.mark.parametrize(
    ("written", "rank", "text"),
    [
        (b"(head, rank=0, pid=2317) step 1\n", 0, "step 1"),
        (b"\x1b[36m(worker1, rank=1, pid=77, ip=10.0.0.2)\x1b[0m step 1\n", 1, "step 1"),
        (b"(task, pid=2317) step 1\n", None, "(task, pid=2317) step 1"),
        (b"[rank3]: Traceback (most recent call last):\n", 3, "Traceback (most recent call last):"),
        (b"[default2]:step 1\n", 2, "step 1"),
        (b"(a, rank=1) none of SkyPilot's\n", None, "(a, rank=1) none of SkyPilot's"),
    ],
)
def test_a_rank_comes_only_from_a_known_prefix(written: bytes, rank: int | None, text: str) -> None:
    line = displayed(0, written)
    assert (line.rank, line.text) == (rank, text)


def test_lines_can_be_filtered_by_rank() -> None:
    log = Written(b"".join(f"(node{i % 3}, rank={i % 3}, pid=1) line {i}\n".encode() for i in range(9)))
    assert texts(log, LineFilter(rank=1)) == ["line 1", "line 4", "line 7"]
    assert ranks_in(log) == (0, 1, 2)
    assert len(find(log, "LINE", 0, LineFilter(rank=2)).at) == 3


def test_progress_reports_are_left_out_and_the_lines_they_split_are_joined() -> None:
    bar = b"".join(b"\r %d%%@mlcd t=%d.0 samples=10 saved=0\n" % (i, i) for i in range(9))
    log = Written(
        b"begins\n@mlcd t=0.1 samples=1 saved=0\n" + bar + b"\r100%\nloss 0.5 @mlcd t=9 samples=2 saved=1\nend"
    )
    assert texts(log) == ["begins", "100%", "loss 0.5 ", "end"]
    assert len(texts(log, ALL)) == 14


def test_a_last_line_that_grows_is_read_again_and_only_that() -> None:
    log = Written(b"one\ntwo\nthr")
    first = lines_after(log, 0)
    assert ([line.text for line in first.lines], first.next) == (["one", "two", "thr"], 8)
    assert lines_before(log, 10**9).next == 8
    log.body += b"ee\nfour\n"
    assert [(line.at, line.text) for line in lines_after(log, first.next).lines] == [(8, "three"), (14, "four")]
    assert lines_before(log, 10**9).next == log.size


def test_reading_backwards_from_the_end_reaches_the_beginning() -> None:
    log = Written(b"".join(b"line %d\n" % i for i in range(100_000)))
    at, seen = log.size, 0
    while at:
        window = lines_before(log, at)
        assert window.next == at
        seen, at = seen + len(window.lines), window.start
    assert seen == 100_000


@given(st.lists(st.sampled_from([b"a\n", b"\r", b"\n", b"x" * 70_000, b"\x1b[3", b"@mlcd t=1 samples=2\n", b"\xc3"])))
def test_reading_forwards_covers_every_byte_once(parts: list[bytes]) -> None:
    log = Written(b"".join(parts))
    at = 0
    while True:
        window = lines_after(log, at, ALL, most=3)
        assert window.start == at
        assert all(at <= line.at for line in window.lines)
        if window.next == at:
            break
        at = window.next
    left = log.body[at:]
    assert b"\n" not in left, "only a last line without a line end is read again"
    begins = [line.at for line in lines_after(log, 0, ALL, most=10**6).lines]
    assert begins == sorted(set(begins))


def test_a_search_continues_where_it_stopped_and_finds_each_line_once() -> None:
    log = Written(b"".join(b"step %d\n" % i for i in range(1_000)))
    positions, at, done = [], 0, False
    while not done:
        part = find(log, "STEP 9", at, most=7)
        assert not set(part.at) & set(positions)
        positions, at, done = [*positions, *part.at], part.next, part.done
    assert [displayed(0, log.read(each, 9).partition(b"\n")[0]).text for each in positions[:2]] == ["step 9", "step 90"]
    assert len(positions) == 111


def test_coloured_and_overwritten_lines_are_searched_as_displayed() -> None:
    log = Written(b"lo\x1b[31mss\x1b[0m nan\n 10% gone\r100% here\n")
    assert find(log, "loss", 0).at == (0,)
    assert find(log, "gone", 0).at == ()
    assert find(log, "here", 0).at == (18,)


@pytest.mark.parametrize(
    "fails",
    [b"Traceback (most recent call last):", b"RuntimeError: CUDA error", b"torch.OutOfMemoryError: tried",
     b"12:00 ERROR worker died", b"bash: line 1: 77 Segmentation fault", b"mlcd: out of memory: the kernel"],
)  # fmt: skip
def test_the_first_error_is_found(fails: bytes) -> None:
    log = Written(b"no errors so far, error=0.25\nlearning from terror: fine\n" + fails + b"\n")
    assert find(log, "", 0).at == (log.body.index(fails),)


@pytest.mark.parametrize("lines", [200_000, pytest.param(1_000_000, marks=pytest.mark.night)])
def test_a_log_of_a_million_lines_is_read_in_windows_with_little_memory(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "0.log"
    with path.open("wb") as file:
        for i in range(0, lines, 1_000):
            file.write(b"".join(b"%09d %s\n" % (j, b"x" * 90) for j in range(i, i + 1_000)))
        file.write(b"RuntimeError: at last\n")
    log = OnDisk(path)
    assert log.size > 100 * lines
    tracemalloc.start()
    began_s = time.process_time()
    tail = lines_before(log, log.size)
    assert (len(tail.lines), tail.lines[-1].text) == (1_000, "RuntimeError: at last")
    at, done, parts, positions = 0, False, 0, list[int]()
    while not done:
        part = find(log, "", at)
        positions, at, done, parts = [*positions, *part.at], part.next, part.done, parts + 1
    assert positions == [tail.lines[-1].at]
    assert tracemalloc.get_traced_memory()[1] < 16e6
    tracemalloc.stop()
    assert log.most_read == PIECE_BYTES
    assert lines / 200_000 < parts < lines / 100_000 + 1
    assert time.process_time() - began_s < 120, "about two seconds; tracing memory takes more"


def test_a_log_of_empty_lines_is_scanned_in_steps() -> None:
    log = Written(b"\n" * (1 << 20))
    first = find(log, "loss", 0)
    assert 0 < first.next < log.size
    assert not first.done
    assert lines_after(log, 0, LineFilter(rank=3)).next < log.size
    back = lines_before(log, log.size, LineFilter(rank=3))
    assert 0 < back.start < log.size
    assert back.lines == ()


def test_a_line_of_many_almost_reports_is_not_slow() -> None:
    log = Written(b"@mlcd t=1 samples=" * 14_000 + b"\rend\n")
    began_s = time.thread_time()
    assert texts(log) == ["end"]
    assert time.thread_time() - began_s < 2.0, "it took half a minute when each was compared with all that follow"


def test_a_giant_line_is_split_and_cut() -> None:
    log = Written(b"x" * 3_000_000 + b"needle\nend\n")
    window = lines_after(log, 0)
    assert len(window.lines) == 13
    assert all(len(line.text) <= MAX_SHOWN_CHARACTERS for line in window.lines)
    assert window.lines[0].cut == PIECE_BYTES - MAX_SHOWN_CHARACTERS
    assert window.next == log.size
    assert len(find(log, "needle", 0).at) == 1
    assert lines_before(log, log.size).lines[-1].text == "end"


@given(st.binary(max_size=400))
def test_any_bytes_become_text_without_terminal_control(body: bytes) -> None:
    for line in lines_after(Written(body), 0, ALL).lines:
        left = line.text.replace("\x1b[", "").replace("\t", "")
        assert all(each.isprintable() or ord(each) > 0x9F for each in left), repr(line.text)
