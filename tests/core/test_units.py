from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlcd.core.units import (
    MOST_NODES,
    counted,
    format_confidence,
    format_count,
    format_duration,
    format_duration_up,
    format_rate,
    format_usd,
    format_usd_up,
    parse_batches,
    parse_confidence,
    parse_count,
    parse_duration,
    parse_gb,
    parse_latency,
    parse_range,
    parse_traffic,
    parse_usd,
)


@pytest.mark.parametrize(
    "written, usd",
    [
        ("$100", 100), ("100", 100), (100, 100), (99.5, 99.5), ("1,200.50 usd", 1200.5), ("$ 5", 5), ("5$", 5),
        ("5 Dollars", 5), ("1 dollar", 1), ("1_000", 1000), (".5", 0.5), ("1e3", 1000), ("  $7  ", 7),
    ],
)  # fmt: skip
def test_money_is_read_as_people_write_it(written: Any, usd: float) -> None:
    assert parse_usd(written) == usd


@pytest.mark.parametrize(
    "written, seconds",
    [
        ("6h", 21_600), ("1d 4h", 100_800), ("90m", 5_400), ("1h30m", 5_400), ("45 s", 45), ("2 weeks", 1_209_600),
        ("1.5 hours", 5_400), ("1 day", 86_400), ("10 MIN", 600), ("1,000 s", 1_000), ("0.5s", 0.5), (".5 h", 1_800),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(written: Any, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written, count", [("60M", 60e6), ("1.2B", 1.2e9), ("50k", 50e3), (50_000, 50e3), ("2 T", 2e12), ("12.3G", 12.3e9)]
)
def test_counts_are_read_with_their_multiples(written: Any, count: float) -> None:
    assert parse_count(written) == pytest.approx(count, rel=1e-12)


@pytest.mark.parametrize(
    "written, gb", [("32", 32), (32, 32), ("32GB", 32), ("32 GiB", 32), ("1.5TB", 1500), ("512mb", 0.512)]
)
def test_memory_is_read_in_gigabytes(written: Any, gb: float) -> None:
    assert parse_gb(written) == pytest.approx(gb)


@pytest.mark.parametrize(
    "written, gb",
    [
        ("20GB", 20),
        ("20 gb", 20),
        ("500MB", 0.5),
        ("1.5TB", 1_500),
        ("1GiB", 1.073741824),
        ("0", 0),
        (0, 0),
        ("0GB", 0),
    ],
)
def test_traffic_is_read_in_billions_of_bytes(written: Any, gb: float) -> None:
    assert parse_traffic(written) == pytest.approx(gb)


@pytest.mark.parametrize(
    "written, counts", [("1..50", (1, 50)), ("8", (8, 8)), (8, (8, 8)), (" 2 .. 4 ", (2, 4)), ("3..3", (3, 3))]
)
def test_ranges_include_both_ends(written: Any, counts: tuple[int, int]) -> None:
    assert parse_range(written) == counts


@pytest.mark.parametrize(
    "parse, written, told",
    [
        (parse_usd, "100 euros", "expected dollars, such as $100"),
        (parse_usd, "€100", "expected dollars"),
        (parse_usd, "", "expected dollars"),
        (parse_usd, "nan", "expected dollars"),
        (parse_usd, "1,20", "expected dollars"),
        (parse_usd, True, "expected dollars"),
        (parse_usd, "-5", "more than zero"),
        (parse_usd, "-$5", "more than zero"),
        (parse_usd, "$-5", "more than zero"),
        (parse_usd, 0, "more than zero"),
        (parse_usd, "1e400", "too large"),
        (parse_usd, "$1e13", "too large"),
        (parse_duration, "-3h", "must be more than zero"),
        (parse_duration, "0h", "must be more than zero"),
        (parse_duration, "6 parsecs", "unknown unit 'parsecs'"),
        (parse_duration, "6", "a number alone has no unit"),
        (parse_duration, 6, "a number alone has no unit"),
        (parse_duration, True, "expected a duration"),
        (parse_latency, "20", "such as 30ms or 1.5s (a number alone has no unit)"),
        (parse_latency, 0.2, "a number alone has no unit"),
        (parse_latency, True, "expected a latency"),
        (parse_latency, "0ms", "expected a latency"),
        (parse_duration, "", "expected a duration"),
        (parse_duration, "h6", "expected a duration"),
        (parse_duration, "6h and more", "expected a duration"),
        (parse_duration, "1e308w", "too large"),
        (parse_duration, "1e9 days", "too large"),
        (parse_count, "many", "expected a positive number"),
        (parse_count, "-4", "expected a positive number"),
        (parse_count, True, "expected a positive number"),
        (parse_count, "0", "more than zero"),
        (parse_count, "1e308P", "too large"),
        (parse_count, "1e25", "too large"),
        (parse_gb, "5 apples", "expected an amount of memory"),
        (parse_gb, True, "expected an amount of memory"),
        (parse_gb, "0", "more than zero"),
        (parse_gb, "1e308TB", "too large"),
        (parse_traffic, "much", "expected an amount of data"),
        (parse_traffic, "20", "expected an amount of data, such as 20GB"),
        (parse_traffic, "-1GB", "expected an amount of data"),
        (parse_traffic, True, "expected an amount of data"),
        (parse_traffic, "1e308TB", "too large"),
        (parse_range, "0..5", "the smallest count is 1"),
        (parse_range, "5..2", "did you mean 2..5?"),
        (parse_range, "few", "expected a range, such as 1..50"),
        (parse_range, True, "expected a range"),
        (parse_range, None, "expected a range"),
        (parse_range, "-1..5", "expected a range"),
        (parse_range, f"1..{MOST_NODES + 1}", f"the largest count is {MOST_NODES}"),
    ],
)
def test_invalid_text_is_quoted_with_what_was_expected(parse: Callable[[Any], object], written: Any, told: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        parse(written)
    assert told in str(refused.value)
    assert str(refused.value).startswith(f"'{written}': ")


@pytest.mark.parametrize(
    "shown, expected",
    [
        (format_usd(0), "$0.00"), (format_usd(0.0036), "$0.0036"), (format_usd(1234.567), "$1,234.57"),
        (format_duration(8), "8 s"), (format_duration(0.25), "0.25 s"), (format_duration(59.7), "1 m"),
        (format_duration(33_600), "9 h 20 m"), (format_duration(100_800), "1 d 4 h"), (format_duration(720), "12 m"),
        (format_duration(86_399), "1 d"), (format_duration(0), "0 s"), (format_duration(float("inf")), "forever"),
        (format_duration(7_464 * 86_400 + 16 * 3_600), "7,464 d 16 h"),
        (format_rate(1240), "1,240"), (format_rate(82.14), "82.1"), (format_rate(0.000376), "0.000376"),
        (format_rate(999.7), "1,000"), (format_count(60e6), "60M"), (format_count(1.2e9), "1.2B"),
        (format_count(950), "950"), (format_count(999_900), "1M"), (format_count(999.9), "1k"),
        (format_count(2e15), "2P"),
    ],
)  # fmt: skip
def test_numbers_are_shown_short(shown: str, expected: str) -> None:
    assert shown == expected


@given(st.floats(0.001, 1e9))
@example(424_769_369.5)
def test_a_shown_duration_reads_back_within_its_rounding(seconds: float) -> None:
    unit = 3_600 if seconds >= 86_370 else 60 if seconds >= 3_599 else 1
    rounding = unit / 2 + 30.5 if seconds >= 1 else 0.06 * seconds  # to seconds, then minutes, then hours
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=rounding)


@given(st.floats(0.0001, 1e12))
def test_shown_dollars_read_back_within_their_rounding(usd: float) -> None:
    assert parse_usd(format_usd(usd)) == pytest.approx(usd, abs=0.00006 if usd < 0.01 else 0.0051)


@given(st.floats(0.01, 9e17))
def test_a_shown_count_reads_back_to_three_digits(value: float) -> None:
    assert parse_count(format_count(value)) == pytest.approx(value, rel=0.006)


@given(st.integers(1, MOST_NODES), st.integers(1, MOST_NODES))
def test_a_range_reads_back(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert parse_range(f"{low}..{high}") == (low, high)


@given(st.text(max_size=20))
def test_no_text_whatever_makes_a_parser_fail_otherwise_than_with_a_sentence(text: str) -> None:
    for parse in (parse_usd, parse_duration, parse_count, parse_gb, parse_traffic, parse_range):
        told = f"'{text}': "
        try:
            parse(text)
        except ValueError as refused:
            told = str(refused)
        assert told.startswith(f"'{text}': ")


@pytest.mark.parametrize(
    "number, thing, told",
    [
        (0, "run", "0 runs"),
        (1, "type", "1 type"),
        (1, "launch", "1 launch"),
        (2, "launch", "2 launches"),
        (1, "entry", "1 entry"),
        (3, "entry", "3 entries"),
        (10, "epoch", "10 epochs"),
        (4096, "trial", "4,096 trials"),
    ],
)
def test_one_thing_is_singular(number: int, thing: str, told: str) -> None:
    assert counted(number, thing) == told


def test_no_price_is_shown_as_free():
    assert format_usd(0.00001) == "$0.00001"
    assert format_usd(0.0000327) == "$0.00003"
    assert format_usd(0.0002) == "$0.0002"
    assert format_usd(0.0) == "$0.00"


@pytest.mark.parametrize(
    "parse", [parse_usd, parse_duration, parse_count, parse_gb, parse_traffic, parse_batches, parse_range]
)
@pytest.mark.parametrize("piece", ["1e", "1e1", "1 ", " ", "1,", "1h", "1..", "$", "-", "1,000", "1_000", "é1"])
def test_long_nonsense_is_refused_at_once(parse, piece):
    """A pattern that tries every way to split these would take years; such words come from strangers, too."""
    with pytest.raises(ValueError, match=r"expected|must|unknown unit|no unit"):
        parse(piece * 2_000 + "!")


@given(st.floats(1e-4, 1e9))
def test_a_budget_of_the_displayed_amount_is_enough_and_hardly_more(usd):
    assert usd <= parse_usd(format_usd_up(usd)) <= usd + (0.02 if usd >= 0.01 else 0.0002)


@given(st.floats(1.0, 1e8))
def test_a_deadline_of_the_displayed_time_is_enough_and_hardly_more(seconds):
    assert seconds <= parse_duration(format_duration_up(seconds)) <= seconds + max(2, 0.09 * seconds)


@pytest.mark.parametrize("written, share", [("0.9", 0.9), (0.995, 0.995), ("99 %", 0.99), ("99.5%", 0.995), (0.5, 0.5)])
def test_a_confidence_is_parsed_as_people_write_it_and_formatted_in_percent(written: Any, share: float) -> None:
    assert parse_confidence(written) == pytest.approx(share)
    assert parse_confidence(format_confidence(share)) == pytest.approx(share)


@pytest.mark.parametrize("written", [1, "100 %", 0.49, "99", "0", -0.9, "sure", "none", True, "", "0.9 0.9"])
def test_an_invalid_confidence_is_refused_with_what_was_expected(written: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a probability from 0\.5 to below 1, such as 0\.99 or 99 %"):
        parse_confidence(written)
