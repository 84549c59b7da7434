"""Arrival traces are read in the formats in which they are published."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcd.clouds.load.traces import read_trace
from mlcd.core.errors import UserError

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:48.6805900,10,0
"""
MOONCAKE = """{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 48]}
"""
OWN = "time_s,input_tokens,output_tokens\n5,10,2\n7.5,20,4\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "trace"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "times_s", "lengths"),
    [
        (AZURE, [0.0, 2.0, 4.314579], [(374, 44), (10, 1), (396, 109)]),
        (MOONCAKE, [0.0, 3.053], [(6955, 52), (6472, 26)]),
        (OWN, [0.0, 2.5], [(10, 2), (20, 4)]),
        ('{"time_s": 1}\n{"time_s": 1.5}\n', [0.0, 0.5], []),
        ("timestamp\n100\n101\n", [0.0, 1.0], []),
    ],
    ids=["azure", "mooncake", "own", "jsonl", "csv"],
)
def test_a_trace_is_read(tmp_path: Path, text: str, times_s: list[float], lengths: list[tuple[int, int]]) -> None:
    trace = read_trace(written(tmp_path, text))
    assert list(trace.arrivals.due_s()) == pytest.approx(times_s, abs=1e-6)
    assert list(trace.lengths) == lengths


def test_a_trace_can_be_played_faster(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path, OWN), time_scale=0.5).arrivals.times_s == (0.0, 1.25)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no request"),
        ("when,n\n1,2\n", ":2: no time: expected a column 'time_s'"),
        ("time_s\nsoon\n", ":2: 'soon' is not a time"),
        ("time_s\nnan\n", ":2: 'nan' is not a time"),
        ("time_s,input_tokens\n1,5\n", ":2: expected tokens of both the prompt and the answer"),
        ("time_s,input_tokens,output_tokens\n1,5,x\n", ":2: 'x' is not a number of tokens"),
        ('{"time_s": 1}\n{oops\n', ":2: expected a JSON object"),
        (
            '{"time_s": 1}\n{"time_s": 2, "input_tokens": 3, "output_tokens": 4}\n',
            "some requests have numbers of tokens",
        ),
    ],
)
def test_a_trace_that_cannot_be_used_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read_trace(written(tmp_path, text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_trace_and_an_invalid_scale_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_trace(tmp_path / "none")
    with pytest.raises(UserError, match="time scale 0: expected a number above 0"):
        read_trace(written(tmp_path, OWN), time_scale=0.0)
