"""Parse and format money, durations, counts and ranges as people write them.

Inside MLCD a duration is a float of seconds (`_s`), money a float of US dollars (`usd`). Every parser raises
`ValueError` with a sentence that says what was expected; the caller adds file and line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from mlcd.core.errors import nearest

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNIT_NAMES = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_MULTIPLES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12, "p": 1e15}
MOST_NODES = 1_000
"""Each node count is one configuration for each type; with more, a search step would take minutes."""
MOST_USD, MOST_S, MOST_COUNT = 1e12, 1e12, 1e24
"""Larger values are mistakes, and their products would overflow."""
# Atomic groups and possessive quantifiers here and below, so that hostile text causes no backtracking.
_NUMBER = r"(?>\d+(?:[_,]\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)"


def parse_batches(text: str | int) -> tuple[int, ...]:
    """'64..1024' -> 64, doubled until 1024; '96, 192'; 128."""
    pattern = r"\s*(\d{1,9})\s*\.\.\s*(\d{1,9})\s*|\s*\d{1,9}(?:\s*,\s*\d{1,9})*\s*"
    match = _match(pattern, text, "expected a batch, a range such as 64..1024, or a list such as 96,192")
    if match[1] is None:
        batches = sorted({int(each) for each in str(text).split(",")})
    else:
        low, high = int(match[1]), int(match[2])
        if low > high:
            raise ValueError(f"'{text}': the first number must not be larger than the second")
        doubled = [low << i for i in range(30) if low << i < high] if low else []
        batches = [*doubled, high]
    if batches[0] < 1:
        raise ValueError(f"'{text}': a batch has at least one sample")
    return tuple(batches)


def parse_usd(text: str | float) -> float:
    """'$100', '100', '1,200.50 usd' -> dollars, more than zero."""
    pattern = rf"\s*+(-?)\s*+\$?\s*+(-?)({_NUMBER})\s*+(?:\$|usd|dollars?)?\s*+"
    match = _match(pattern, text, "expected dollars, such as $100")
    value = -1.0 if match[1] or match[2] else _number(match[3])
    return _positive(value, text, "must be more than zero, such as $100", MOST_USD)


def parse_duration(text: str | float) -> float:
    """'6h', '1d 4h', '90m', '1h30m', '45 s' -> seconds, more than zero."""
    expected = "expected a duration, such as 6h, 90m or 1d 4h"
    positive = "a duration must be more than zero, such as 6h"
    written = str(text).strip()
    if isinstance(text, bool) or re.fullmatch(_NUMBER, written):
        raise ValueError(f"'{text}': {expected} (a number alone has no unit)")
    if written.startswith("-"):
        raise ValueError(f"'{text}': {positive}")
    _match(rf"\s*+(?:{_NUMBER}\s*+[A-Za-z]++\s*+)++", text, expected)
    seconds = 0.0
    for number, word in re.findall(rf"(?<!\d)({_NUMBER})\s*+([A-Za-z]++)", written):
        unit = _UNIT_NAMES.get(word.lower(), word.lower())
        if unit not in SECONDS:
            raise ValueError(f"'{text}': unknown unit '{word}'; {expected}")
        seconds += _number(number) * SECONDS[unit]
    return _positive(seconds, text, positive, MOST_S)


def parse_count(text: str | float, such_as: str = "60M") -> float:
    """'60M', '1.2B', '50k', 50000 -> a number, more than zero."""
    pattern = rf"\s*+({_NUMBER})\s*+([kmgbtp]?)\s*+"
    match = _match(pattern, text, "expected a positive number, such as 60M, 1.2B or 50000")
    value = _number(match[1]) * _MULTIPLES[match[2].lower()]
    return _positive(value, text, f"must be more than zero, such as {such_as}", MOST_COUNT)


def parse_gb(text: str | float) -> float:
    """'32', '32GB', '32GiB', '1.5TB', '512MB' -> gigabytes, more than zero."""
    pattern = rf"\s*+({_NUMBER})\s*+(?:([kmgt])i?b)?\s*+"
    match = _match(pattern, text, "expected an amount of memory, such as 32GB")
    gb = {"k": 1e-6, "m": 1e-3, "g": 1.0, "t": 1e3}[(match[2] or "g").lower()]
    return _positive(_number(match[1]) * gb, text, "must be more than zero, such as 32GB", MOST_COUNT)


def parse_traffic(text: str | float) -> float:
    """'20GB', '500MB', '1TiB', '0' -> billions of bytes. A number alone is refused: people mean GB, programs bytes."""
    expected = "expected an amount of data, such as 20GB"
    match = _match(rf"\s*+({_NUMBER})\s*+(?:([kmgt])(i?)b)?\s*+", text, expected)
    amount = _number(match[1])
    if amount == 0:
        return 0.0
    if match[2] is None:
        raise ValueError(f"'{text}': {expected}")
    unit = (1_024 if match[3] else 1_000) ** ("kmgt".index(match[2].lower()) + 1)
    return _positive(amount * unit / 1e9, text, expected, MOST_COUNT)


def parse_range(text: str | int, most: int = MOST_NODES) -> tuple[int, int]:
    """'1..50' or '8' -> the smallest and the largest count, both included."""
    match = _match(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?", text, "expected a range, such as 1..50")
    low, high = int(match[1]), int(match[2] or match[1])
    if low < 1:
        raise ValueError(f"'{text}': the smallest count is 1")
    if high < low:
        raise ValueError(f"'{text}': the range is empty; did you mean {high}..{low}?")
    if high > most:
        raise ValueError(f"'{text}': the largest count is {most}")
    return low, high


def parse_share(text: str | float) -> float:
    """'0.3', '30 %', or 'none' for 1 -> a share above 0 and up to 1."""
    value = 1.0 if str(text).strip().lower() == "none" else _fraction(text)
    if not 0 < value <= 1:
        raise ValueError(f"'{text}': expected a share above 0 and up to 1, such as 0.3, or none")
    return value


def parse_confidence(text: str | float) -> float:
    """'0.9', '99 %' -> a probability of at least a half and below 1."""
    value = _fraction(text)
    if not 0.5 <= value < 1:
        raise ValueError(f"'{text}': expected a probability from 0.5 to below 1, such as 0.99 or 99 %")
    return value


def parse_latency(text: str | float) -> float:
    """'30ms', '1.5 s' -> seconds, more than zero."""
    expected = "expected a latency, such as 30ms or 1.5s"
    if isinstance(text, bool) or re.fullmatch(rf"\s*+{_NUMBER}\s*+", str(text)):
        raise ValueError(f"'{text}': {expected} (a number alone has no unit)")
    match = _match(rf"\s*+({_NUMBER})\s*+(ms|us|s)\s*+", text, expected)
    value = _number(match[1]) * {"ms": 1e-3, "us": 1e-6, "s": 1.0}[match[2].lower()]
    if not 0 < value < math.inf:
        raise ValueError(f"'{text}': {expected}")
    return value


def parse_size(text: str) -> tuple[str, int]:
    """'sequence=128' -> the axis and its size."""
    expected = "expected an axis and its size, such as sequence=128"
    match = _match(r"\s*([^=\s]+)\s*=\s*(\d{1,9})\s*", text, expected)
    if int(match[2]) < 1:
        raise ValueError(f"'{text}': {expected}")
    return match[1], int(match[2])


def parse_whole(text: Any, least: int, most: float = math.inf) -> int:
    """A whole number between these ends."""
    ends = f"from {least} to {most}" if most < math.inf else f"of {least} or more"
    match = _match(r"\s*([+-]?\d{1,18})\s*", text, f"expected a whole number {ends}")
    if not least <= int(match[1]) <= most:
        raise ValueError(f"'{text}': expected a whole number {ends}")
    return int(match[1])


def parse_flag(written: Any) -> bool:
    """A boolean, and nothing that only looks like one."""
    if not isinstance(written, bool):
        raise ValueError(f"'{written}': expected true or false")
    return written


def parse_patterns(written: Any) -> tuple[str, ...]:
    """One pattern of names, several with commas between them, or a list of these."""
    listed = tuple(written) if isinstance(written, list | tuple) else (written,)
    texts = [each for each in listed if isinstance(each, str) and each.isprintable()]
    patterns = tuple(pattern.strip() for each in texts for pattern in each.split(","))
    if not patterns or len(texts) < len(listed) or not all(patterns):
        raise ValueError(f"'{written}': expected patterns, such as [c5.*, p3.*]")
    return patterns


def parse_one_of(written: Any, known: Iterable[str]) -> str:
    """One of these words."""
    words = [str(each) for each in known]
    if str(written) not in words:
        raise ValueError(f"'{written}': {nearest(str(written), words)}")
    return str(written)


def _match(pattern: str, text: Any, expected: str) -> re.Match[str]:
    match = None if isinstance(text, bool) else re.fullmatch(pattern, str(text), re.IGNORECASE)
    if match is None:
        raise ValueError(f"'{text}': {expected}")
    return match


def _positive(value: float, text: str | float, expected: str, most: float) -> float:
    if value <= 0:
        raise ValueError(f"'{text}': {expected}")
    if not value <= most:
        raise ValueError(f"'{text}': too large")
    return value


def _fraction(text: str | float) -> float:
    """'0.3' and '30 %' -> 0.3; 0 for anything else."""
    match = re.fullmatch(rf"\s*+({_NUMBER})\s*+(%?)\s*+", str(text))
    return 0.0 if match is None or isinstance(text, bool) else _number(match[1]) / (100 if match[2] else 1)


def _number(text: str) -> float:
    return float(re.sub(r"[_,](?=\d{3})", "", text))


def format_confidence(confidence: float) -> str:
    """'99 %', '99.5 %'."""
    return f"{100 * confidence:.10g} %"


def format_usd(usd: float) -> str:
    """Two decimals; more below a cent, so that a cheap probe does not look free."""
    if 0 < abs(usd) < 0.00005:
        return f"${usd:.{-math.floor(math.log10(abs(usd)))}f}"
    if 0 < abs(usd) < 0.01:
        return f"${usd:.4f}"
    return f"${usd:,.2f}"


def format_usd_up(usd: float) -> str:
    """As `format_usd`, but rounded up, so that a budget of the displayed amount is enough."""
    step = 0.01 if usd >= 0.01 else 0.0001
    return shown if parse_usd(shown := format_usd(usd)) >= usd else format_usd(usd + step)


def format_duration_up(seconds: float) -> str:
    """As `format_duration`, but rounded up, so that a deadline of the displayed time is enough."""
    step = 1 if seconds < 3_600 else 60 if seconds < 86_400 else 3_600
    shown = format_duration(seconds)
    return shown if not math.isfinite(seconds) or parse_duration(shown) >= seconds else format_duration(seconds + step)


def format_duration(seconds: float) -> str:
    """The two largest units that are not zero: '9 h 20 m', '1 d 4 h', '12 m', '8 s'."""
    if not math.isfinite(seconds):
        return "forever"
    total = round(seconds)
    if total < 60:
        return f"{seconds:.2g} s" if 0 < seconds < 1 else f"{total} s"
    if total >= 3_600:  # to the minute
        total = round(total / 60) * 60
    if total >= 86_400:  # to the hour
        total = round(total / 3_600) * 3_600
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (left, "s")]
    shown = [f"{value:,} {unit}" for value, unit in parts if value][:2]
    return " ".join(shown)


def format_rate(per_s: float) -> str:
    """Three significant digits: '1,240', '82.1', '0.000376'."""
    if per_s >= 999.5:  # what three digits would round to 1e+03
        return f"{per_s:,.0f}"
    return f"{per_s:.3g}"


def format_count(value: float) -> str:
    """'60M', '1.2B', '950'."""
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:  # 999,600 is 1M, not 1e+03k
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def counted(number: int, thing: str) -> str:
    """'1 trial', '4,096 trials', '2 launches', '3 retries'."""
    many = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}es" if thing.endswith("nch") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else many}"
