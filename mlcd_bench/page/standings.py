"""The panels: for each scenario and limit a table of methods with their box plots, best median first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcd_bench.page.cells import WIDE, box_plot, cell, interval_plot, number, percent, table, ticks
from mlcd_bench.page.data import Panel, Standing
from mlcd_bench.page.svg import Scale, element, text

TICKS, SHARE_TICKS = 5, 2
LOG_FROM = 4.0
"""If the worst p95 is larger, the axis is logarithmic, so that a bad method does not squeeze the good ones."""


def standings(panel: Panel) -> str:
    """One panel as a table."""
    scale = _ratio_scale(panel)
    limited = panel.limit_factor is not None
    share = Scale(0.0, max(0.1, *(s.over_high for s in panel.standings)), 0.0, WIDE)
    columns = [
        ("Method", ""),
        (ticks(scale, lambda tick: f"{tick:g}", TICKS), "plot"),
        ("Median", "num"),
        ("Mean", "num far"),
        ("p95", "num far"),
        ("Certified", "num"),
    ]
    if limited:
        columns += [
            ("Past limit", "num"),
            (ticks(share, lambda tick: f"{100 * tick:g} %", SHARE_TICKS), "band-plot far"),
        ]
    columns += [("Probing", "num far"), ("Probes", "num far")]
    rows = [_row(panel, standing, scale, share if limited else None) for standing in panel.standings]
    return table(f"Methods in {panel.title}: ratio to the oracle", columns, rows, "standings")


def heat(panels: Sequence[Panel]) -> str:
    """A heat map of all medians: methods down, panels across; darker is worse, red exceeded the limit."""
    where = {(panel, s.method): s for panel in panels for s in panel.standings}
    methods = sorted(
        dict.fromkeys(s.method for panel in panels for s in panel.standings),
        key=lambda name: sum(_log_median(where.get((panel, name))) for panel in panels),
    )
    columns = [("Method", ""), *((_heading(panel), "num") for panel in panels)]
    rows = []
    for name in methods:
        cells = [_heat_cell(where.get((panel, name))) for panel in panels]
        rows.append(element("tr", element("th", _named(name), scope="row"), *cells))
    return table("Median ratio to the oracle of every method in every scenario", columns, rows, "heat")


def _row(panel: Panel, standing: Standing, scale: Scale, share: Scale | None) -> str:
    best = standing.method == panel.best
    spread = standing.ratios
    plot = box_plot(spread, scale, TICKS) if spread is not None else element("span", "chose nothing", class_="none")
    values = (spread.median, spread.mean, spread.p95) if spread is not None else (None, None, None)
    cells = [
        element("th", _named(standing.method, " ★" if best else ""), scope="row"),
        cell(plot, "plot"),
        cell(number(values[0]), "num"),
        cell(number(values[1]), "num far"),
        cell(number(values[2]), "num far"),
        cell(percent(standing.certified / standing.runs), "num"),
    ]
    if share is not None:
        part = standing.over / standing.runs
        cells.append(cell(percent(part), "num bad" if standing.over else "num"))
        drawn = interval_plot(part, standing.over_low, standing.over_high, share, SHARE_TICKS)
        cells.append(cell(drawn, "band-plot far"))
    cells += [cell(percent(standing.probing_share), "num far"), cell(f"{standing.probes:.1f}", "num far")]
    kind = "guarded" if standing.guarded else "raw"
    return element("tr", *cells, class_=f"{kind} best" if best else kind)


def _ratio_scale(panel: Panel) -> Scale:
    spreads = [s.ratios for s in panel.standings if s.ratios is not None]
    high = max([1.5, *(max(spread.p95, spread.mean) for spread in spreads)])
    low = min([1.0, *(spread.p5 for spread in spreads)])
    return Scale(low, high, 0.0, WIDE, log=high > LOG_FROM)


def _heading(panel: Panel) -> str:
    factor = element("small", f"x{panel.limit_factor:g}" if panel.limit_factor is not None else "no limit")
    return text(panel.scenario) + factor


def _heat_cell(standing: Standing | None) -> str:
    if standing is None or standing.ratios is None:
        return cell("–", "none")
    # From the oracle's 1 to five times it, in equal steps of the logarithm.
    dark = min(1.0, max(0.0, math.log(standing.ratios.median) / math.log(5)))
    over = element("b", f" · {percent(standing.over / standing.runs)} over") if standing.over else ""
    below = element("small", percent(standing.chose / standing.runs), over)
    return cell(number(standing.ratios.median) + below, style=f"--v:{dark:.2f}")


def _named(method: str, more: str = "") -> str:
    name, plus, guard = method.partition("+")
    return text(name) + (element("span", text(plus + guard), class_="tag") if plus else "") + text(more)


def _log_median(standing: Standing | None) -> float:
    return math.log(standing.ratios.median) if standing is not None and standing.ratios is not None else math.log(1e3)
