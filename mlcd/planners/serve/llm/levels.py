"""The rate and figures of a language model at one concurrency, from the streamed answers of a load test.

In a closed loop each of c clients waits for its answer before it asks again, so the rate follows from single answers:

    rate = c x (sum of tokens) / (sum of latencies)

Counting tokens between two moments would depend on where in an answer these moments fall. The error of the ratio is
estimated from its variation between windows (Cochran, Sampling Techniques, 1977, section 6.3). The ratio is too high if
requests wait for admission and not every client has had two answers, since the first answers have waited least. In that
case the rate is at most the token rate after the first answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from mlcd.core.configuration import Floats
from mlcd.core.measurement import Z
from mlcd.planners.serve.llm.nouns import Stream
from mlcd.planners.serve.measure import ALPHA, Interval, quantile
from mlcd.planners.serve.nouns import Cap, Figure, Level, Window

TICK_S = 1e-6
"""The least time between two chunks: figures must have logarithms, and chunks may be read together."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Figures of one kind: the values that a stream contributes, and the quantiles that are taken."""

    values: Callable[[Stream], Sequence[float]]
    quantiles: dict[Figure, float]


KINDS = (
    _Kind(lambda stream: (stream.latency_s,), {Figure.P50: 0.50, Figure.P95: 0.95, Figure.P99: 0.99}),
    _Kind(lambda stream: (stream.ttft_s,), {Figure.TTFT_P50: 0.50, Figure.TTFT_P95: 0.95}),
    _Kind(
        lambda stream: () if stream.tpot_s is None else (stream.tpot_s,),
        {Figure.TPOT_P50: 0.50, Figure.TPOT_P95: 0.95},
    ),
    _Kind(lambda stream: stream.gaps_s, {Figure.ITL_P50: 0.50, Figure.ITL_P95: 0.95}),
)


def level_of(
    windows: Sequence[Window], concurrency: int, noise_floor: float = 0.01, ended_s: Sequence[float] = ()
) -> Level:
    """The rate in output tokens a second and all figures of a closed loop. ValueError if nothing was answered.

    `noise_floor`: the smallest relative error, since two launches of the same differ. `ended_s`: the end time of each
    window.
    """
    kept = steady(windows, concurrency)
    answered = [window.streams for window in kept if window.streams]
    if not answered:
        raise ValueError("no answer was streamed")
    tokens = np.array([sum(stream.tokens for stream in streams) for streams in answered], dtype=float)
    busy_s = np.array([math.fsum(stream.latency_s for stream in streams) for streams in answered])
    rate = concurrency * float(tokens.sum() / busy_s.sum())
    if len(kept) == len(windows) and ended_s:
        rate = min(rate, _rate_after_first(windows, ended_s))
    figures = figures_of(answered, noise_floor)
    return Level(
        concurrency,
        rate,
        max(noise_floor, _ratio_error(tokens, busy_s)),
        {figure: interval.at for figure, interval in figures.items()},
        {figure: interval.high for figure, interval in figures.items()},
    )


def steady(windows: Sequence[Window], concurrency: int) -> Sequence[Window]:
    """The windows without the first answers of all clients, which began together; all windows if too few remain."""
    counts = np.cumsum([len(window.streams) for window in windows])
    first = int(np.searchsorted(counts, concurrency)) + 1  # windows until every client has had an answer
    return windows[first:] if first < len(windows) and counts[-1] - counts[first - 1] >= concurrency else windows


def _rate_after_first(windows: Sequence[Window], ended_s: Sequence[float]) -> float:
    """Tokens a second after the first answers; infinite if that time is shorter than a typical answer."""
    first = next(i for i, window in enumerate(windows) if window.streams)
    span_s = ended_s[-1] - ended_s[first]
    usual_s = float(np.median([stream.latency_s for window in windows for stream in window.streams]))
    tokens = sum(stream.tokens for window in windows[first + 1 :] for stream in window.streams)
    return tokens / span_s if tokens and span_s >= usual_s else math.inf


def figures_of(answered: Sequence[Sequence[Stream]], noise_floor: float = 0.01) -> dict[Figure, Interval]:
    """All figures of the streams of these windows, each with its interval."""
    found: dict[Figure, Interval] = {}
    for kind in KINDS:
        values = [_values(kind, streams) for streams in answered]
        if values := [each for each in values if len(each)]:
            found |= {figure: quantile(values, q).widened(noise_floor) for figure, q in kind.quantiles.items()}
    return found


def goodput(streams: Iterable[Stream], caps: Sequence[Cap]) -> float:
    """The share of answers that met every cap. For inter-token latency, an answer's own quantile counts."""
    kept = [all(_own(stream, cap.figure) <= cap.at_most_s for cap in caps) for stream in streams]
    return sum(kept) / len(kept) if kept else 0.0


def _own(stream: Stream, figure: Figure) -> float:
    kind = next(kind for kind in KINDS if figure in kind.quantiles)
    values = kind.values(stream)
    return float(np.quantile(values, kind.quantiles[figure], method="inverted_cdf")) if values else 0.0


def _values(kind: _Kind, streams: Sequence[Stream]) -> Floats:
    values = np.array([value for stream in streams for value in kind.values(stream)], dtype=float)
    return np.asarray(np.maximum(values, TICK_S))


def _ratio_error(tokens: Floats, busy_s: Floats) -> float:
    """The relative error of sum(tokens) / sum(busy_s), scaled so that Z of them give Student's interval."""
    n = len(tokens)
    if n < 2:
        return math.inf
    off = tokens - busy_s * (tokens.sum() / busy_s.sum())
    scatter = math.sqrt(n / (n - 1) * float(off @ off)) / float(tokens.sum())
    return scatter * -float(stdtrit(n - 1, ALPHA)) / Z
