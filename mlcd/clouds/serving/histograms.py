"""Latency histograms that an engine publishes at /metrics, in Prometheus' text format.

A bucket counts the requests up to its bound. Requests beyond the first bound at or above a cap are certainly above the
cap. Requests between the cap and that bound may be, but are not counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from urllib.error import URLError
from urllib.request import urlopen

from mlcd.planners.serve.llm.cap_monitor import Counts
from mlcd.planners.serve.nouns import Cap

BUCKET = re.compile(r'^([a-zA-Z_:][\w:]*)_bucket\{[^}]*?\ble="([^"]+)"[^}]*\}\s+(\S+)', re.MULTILINE)
MOST_BYTES = 4_000_000
TIMEOUT_S = 5.0
NAMES: Mapping[str, Sequence[str]] = {
    "ttft": ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "tpot": (
        "vllm:request_time_per_output_token_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
        "sglang:time_per_output_token_seconds",
    ),
    "itl": ("vllm:inter_token_latency_seconds", "sglang:inter_token_latency_seconds"),
    "latency": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
}
"""Histogram names for each kind of figure, by engine and version; the first one found is used."""


@dataclass(frozen=True)
class Histogram:
    """Cumulative requests by upper bound; the last bound is infinite."""

    up_to: Mapping[float, float]

    def since(self, before: Histogram | None) -> Histogram:
        """The requests since an earlier reading; all of them after a restart, which resets the counters."""
        if before is None or before.up_to.get(inf, 0.0) > self.up_to.get(inf, 0.0):
            return self
        return Histogram({bound: count - before.up_to.get(bound, 0.0) for bound, count in self.up_to.items()})

    def counts(self, limit: float) -> Counts:
        """The number of all requests, and of those certainly above the limit."""
        total = self.up_to.get(inf, 0.0)
        within = next((self.up_to[bound] for bound in sorted(self.up_to) if bound >= limit), total)
        return Counts(round(total - within), round(total))


Histograms = Mapping[str, Histogram]


def read_histograms(text: str) -> Histograms:
    """Parse all histograms; those of several engines behind one address are added."""
    found: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for name, bound, count in BUCKET.findall(text):
        with suppress(ValueError):
            found[name][float(bound)] += float(count)
    return {name: Histogram(dict(up_to)) for name, up_to in found.items()}


def ask_histograms(url: str) -> Histograms | None:
    """The histograms of the engine at this address; None if it does not answer."""
    try:
        with urlopen(f"{url}/metrics", timeout=TIMEOUT_S) as answer:
            return read_histograms(answer.read(MOST_BYTES).decode(errors="replace"))
    except (OSError, URLError, ValueError):
        return None


def histogram_of(cap: Cap, found: Histograms) -> Histogram | None:
    """The histogram for a cap; None if the engine has none."""
    kind = cap.figure.rpartition("_")[0] or "latency"
    return next((found[name] for name in NAMES[kind] if name in found), None)
