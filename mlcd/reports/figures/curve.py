"""The trade-off curve as a still picture: time across, cost up, a line for each batch through its numbers of nodes.

As Fig. 10 of Tyagi and Sharma (Scavenger), with the intervals of the model and what really came of the choice.
"""

from __future__ import annotations

from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.scale.nouns import batch_of
from mlcd.reports.curve import Curve, Point
from mlcd.reports.figures.still import Axis, Chart, Series, Spot, still
from mlcd.reports.figures.svg import Scale, marked, time_ticks, usd_tick

WIDEST = 10.0
"""An interval is drawn up to so many times its middle: more than that says that nothing is known."""


def curve_picture(curve: Curve) -> str:
    """Every configuration by its time and cost, the best trade-offs, the knee, the chosen one and what came of it."""
    series = _lines(curve)
    if curve.actual is not None:
        words = f"actual: {', '.join(curve.words(*curve.actual))}"
        series.append(Series("what the run took", len(series), [Spot(curve.actual, words, "actual")], "apart"))
    front = [(p.time, p.cost) for p in curve.points if p.prediction.on_boundary]
    named = " ".join(f"{p.name}: {p.marks}." for p in curve.points if p.chosen or p.prediction.knee)
    points = counted(len(curve.points), "configuration")
    description = f"{points}; nothing beats {len(front)} of them in both time and cost. {named}"
    modelled = any(not p.prediction.measured for p in curve.points)
    hollow = "hollow: modelled, not measured" if modelled else ""
    return still([Chart("The trade-off curve", description, *_axes(curve), series, front, hollow=hollow)])


def _axes(curve: Curve) -> tuple[Axis, Axis]:
    if curve.relative:
        time = Axis("time, as a factor of the fastest", _factors)
        return time, Axis("cost, as a factor of the cheapest", _factors)
    deadline = budget = None
    if curve.left_s is not None:
        deadline = curve.left_s, f"deadline, {format_duration(curve.left_s)} left"
    if curve.left_usd is not None:
        budget = curve.left_usd, f"budget, {format_usd(curve.left_usd)} left"
    dollars = Axis("cost", lambda scale, most: marked(scale, usd_tick, most), budget)
    return Axis("time from the decision on", time_ticks, deadline), dollars


def _factors(scale: Scale, most: int) -> list[tuple[float, str]]:
    return marked(scale, lambda factor: f"x{factor:.6g}", most)


def _lines(curve: Curve) -> list[Series]:
    """A line for each type and batch, from the fewest nodes to the most; its place gives colour and shape."""
    lines: dict[tuple[str, int, str], list[Point]] = {}
    for p in sorted(curve.points, key=lambda p: p.prediction.configuration.nodes):
        place = p.prediction.configuration
        lines.setdefault((place.offer.name, batch_of(place) or 0, p.series), []).append(p)
    one_type = len({type_name for type_name, _, _ in lines}) == 1
    return [
        Series(name.removeprefix(f"{type_name}, ") if one_type else name, i, [_spot(curve, p) for p in points])
        for i, ((type_name, _, name), points) in enumerate(sorted(lines.items(), key=lambda line: line[0][:2]))
    ]


def _spot(curve: Curve, p: Point) -> Spot:
    prediction = p.prediction
    words = f"{p.name}\n{', '.join(curve.words(p.time, p.cost))}"
    words += "" if curve.relative else f"\n9 of 10 times {curve.interval_words(p)}"
    words += f"\n{'measured' if prediction.measured else 'modelled'}" + (f"; {p.marks}" if p.marks else "")
    special = " and ".join(word for word in ("knee", "chosen") if word in p.marks)
    label = f"{special}: {p.name}" if special else str(prediction.configuration.nodes)
    least = max(prediction.low_s / prediction.seconds, 1 / WIDEST)
    most = min(prediction.high_s / prediction.seconds, WIDEST)
    ends = None
    if not curve.relative and least != most:  # along the diagonal: what takes longer costs more
        ends = (p.time * least, p.cost * least), (p.time * most, p.cost * most)
    return Spot((p.time, p.cost), words, label, not prediction.measured, p.chosen, ends)
