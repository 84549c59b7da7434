"""Read an engine's own metrics, in Prometheus' text format."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from urllib.error import URLError
from urllib.request import urlopen

from mlcd.clouds.engines.kind import EngineKind
from mlcd.planners.serve.llm.nouns import EngineLoad

LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})?\s+(\S+)", re.MULTILINE)
MOST_BYTES = 4_000_000
TIMEOUT_S = 1.0


def engine_load(kind: EngineKind, url: str) -> EngineLoad | None:
    """The current load of an engine; None if it does not answer or has none of the metrics."""
    if not kind.gauges:
        return None
    try:
        with urlopen(f"{url}/metrics", timeout=TIMEOUT_S) as answer:
            values = read_metrics(answer.read(MOST_BYTES).decode(errors="replace"))
    except (OSError, URLError, ValueError):
        return None
    load = kind.load(values)
    return None if load == EngineLoad() else load


def read_metrics(text: str) -> dict[str, list[float]]:
    """The values of each metric; an engine with several replicas has a value for each."""
    found: dict[str, list[float]] = defaultdict(list)
    for name, value in LINE.findall(text):
        with suppress(ValueError):
            found[name].append(float(value))
    return dict(found)
