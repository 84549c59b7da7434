"""The trade-off curve as a still picture: time across, cost up, a line for each batch through its numbers of nodes.

As Fig. 10 of Tyagi and Sharma (Scavenger), with the intervals of the model and what really came of the choice.
"""

from __future__ import annotations

from mlcd.core.units import counted, format_duration, format_usd
from mlcd.reports.curve import Curve, Point
from mlcd.reports.figures.axes import Scale, marked, time_ticks, usd_tick
from mlcd.reports.figures.still import Axis, Chart, Series, Spot, still


def curve_picture(curve: Curve) -> str:
    """Every configuration by its time and cost, what nothing beats, the knee, the chosen one and what came of it."""
    series = [Series(_short(curve, name), index, _line(curve, name)) for name, index in curve.order.items()]
    if curve.actual is not None:
        words = f"actual: {curve.time_words(curve.actual[0])}, {curve.cost_words(curve.actual[1])}"
        series.append(Series("what the run took", len(series), [Spot(curve.actual, words, "actual")], "apart"))
    named = " ".join(f"{p.name}: {p.marks}." for p in curve.points if p.chosen or p.prediction.knee)
    points = counted(len(curve.points), "configuration")
    said = f"{points}; nothing beats {len(curve.boundary)} of them in both time and cost. {named}"
    modelled = any(not p.prediction.measured for p in curve.points)
    front = [(p.time, p.cost) for p in curve.boundary]
    hollow = "hollow: modelled, not measured" if modelled else ""
    return still([Chart("The trade-off curve", said, *_axes(curve), series, front, hollow=hollow)])


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


def _line(curve: Curve, name: str) -> list[Spot]:
    """The points of a line, from the fewest nodes to the most."""
    points = [p for p in curve.points if p.series == name]
    return [_spot(curve, p) for p in sorted(points, key=lambda p: p.prediction.configuration.nodes)]


def _spot(curve: Curve, p: Point) -> Spot:
    told = f"{p.name}\n{curve.time_words(p.time)}, {curve.cost_words(p.cost)}"
    told += "" if curve.relative else f"\n9 of 10 times {curve.interval_words(p)}"
    told += f"\n{'measured' if p.prediction.measured else 'modelled'}" + (f"; {p.marks}" if p.marks else "")
    special = " and ".join(word for word in ("knee", "chosen") if word in p.marks)
    label = f"{special}: {p.name}" if special else str(p.prediction.configuration.nodes)
    ends = (p.low, p.high) if p.low != p.high else None  # along the diagonal: what takes longer costs more
    return Spot((p.time, p.cost), told, label, not p.prediction.measured, p.chosen, ends)


def _short(curve: Curve, name: str) -> str:
    """'batch 256' alone, where all machines are of one type."""
    types = {p.prediction.configuration.offer.name for p in curve.points}
    return name.removeprefix(f"{types.pop()}, ") if len(types) == 1 else name
