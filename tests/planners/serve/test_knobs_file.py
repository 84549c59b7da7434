"""A file of knobs: its content, and one line for each mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcd.core.errors import JobFileError
from mlcd.planners.serve.space import load_knobs, parse_knobs, serving_space

GOOD = """\
machine: a laptop
knobs:
  precision: [fp32, int8]
  threads: [2, 1]
  batch: [1, 8]
price:
  base: $0.01
  threads: 0.04
trial: 20s
"""


def test_knobs_are_read_in_order_with_their_price() -> None:
    read = parse_knobs(GOOD, Path("knobs.yaml"))
    space = serving_space(read.table)
    assert dict(read.table.knobs) == {"precision": ("fp32", "int8"), "threads": (1, 2), "batch": (1, 8)}
    assert read.trial_s == 20
    assert read.server is None
    assert len(space) == 8
    assert {round(c.usd_per_hour, 4) for c in space.configurations} == {0.05, 0.09}
    assert space.configurations[0].offer.name == "a laptop: threads 1"


def test_words_are_priced_one_by_one_and_another_server_is_named() -> None:
    read = parse_knobs(
        "knobs: {gpu: [t4, a10], batch: [1]}\nprice: {gpu: {t4: 0.5, a10: $1}}\n"
        "server: {url: 'grpc://127.0.0.1:8001', model: resnet, command: 'serve --batch {batch}'}\n",
        Path("k.yaml"),
    )
    assert {c.usd_per_hour for c in serving_space(read.table).configurations} == {0.5, 1.0}
    assert read.server is not None
    assert read.server.url == "grpc://127.0.0.1:8001"


def test_types_of_machines_need_no_price_of_their_own() -> None:
    read = parse_knobs("knobs: {instance: [m5.large, c5.large], batch: [1]}\ntrial: 20s", Path("k.yaml"))
    assert read.table.knobs == {"instance": ("m5.large", "c5.large"), "batch": (1,)}
    assert read.trial_s == 20.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "k.yaml:1:1: a file of knobs needs `knobs:`"),
        ("[1, 2]", "needs `knobs:`"),
        ("knobs: {}", "needs `knobs:`"),
        ("knobs: {batch: [1]}", "`price:` is missing"),
        ("knobs: {batch: [1]}\nprice: {}", "k.yaml:2:1: `price:` is missing"),
        (
            "knobs: {batch: [1]}\nprice: {threads: 1}",
            "k.yaml:2:9: price for 'threads', which is not a knob",
        ),
        ("knobs: {batch: [1, 1]}\nprice: {base: 1}", "k.yaml:1:9: batch: a value is written twice"),
        ("knobs: {batch: [1, many]}\nprice: {base: 1}", "numbers and words cannot be mixed"),
        ("knobs: {batch: [0, 1]}\nprice: {base: 1}", "numbers must be more than zero"),
        ("knobs: {batch: [true]}\nprice: {base: 1}", "expected a list of numbers or of words"),
        ("knobs: {batch: []}\nprice: {base: 1}", "expected a list of numbers or of words"),
        ("knobs: {batch: [1]}\nprice: {base: 0}", "a setting would be free"),
        ("knobs: {batch: [1]}\nprice: {batch: cheap}", "k.yaml:2:9: batch 'cheap': expected dollars"),
        ("knobs: {gpu: [t4, a10]}\nprice: {gpu: {t4: 1}}", "expected a price for each of t4, a10"),
        ("knobs: {batch: [1]}\nprice: {base: 1}\ntrial: long", "k.yaml:3:1: trial 'long'"),
        ("knob: {batch: [1]}\nknobs: {batch: [1]}\nprice: {base: 1}", "unknown key 'knob': did you mean 'knobs'?"),
        ("knobs: {batch: [1]}\nprice: {base: 1}\nserver: here", "server: expected `url:` and `model:`"),
        ("knobs: {batch: [1]}\nprice: {base: 1}\nserver: {url: 'ftp://x', model: m}", "needs `url: http://HOST:PORT`"),
        ("knobs: {batch: [1]}\nprice: {base: 1}\nserver: {urll: x}", "k.yaml:3:10: unknown key 'urll'"),
        (
            f"knobs: {{a: {list(range(1, 400))}, b: {list(range(1, 400))}}}\nprice: {{base: 1}}",
            "159,201 configurations",
        ),
        ("knobs: {batch: [1", "not YAML"),
        ("knobs: {instance: [1, 2]}", "instance: expected types of machines, such as [m5.large, c5.xlarge]"),
        ("knobs: {instance: [m5.large]}\nprice: {base: 1}", "k.yaml:2:1: `price:` is for a server on this machine"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(text: str, told: str) -> None:
    with pytest.raises(JobFileError) as raised:
        parse_knobs(text, Path("k.yaml"))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match="no such file"):
        load_knobs(tmp_path / "none.yaml")
