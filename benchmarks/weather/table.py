"""The tables of `certificates.py`: certificates kept, their cost, and wrong refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy import stats
from weather.conditions import ALL
from weather.trial import Trial

BANDS = {"below 1.1": (0.0, 1.1), "1.1 to 1.15": (1.1, 1.151), "above": (1.151, np.inf)}
"""Ranges of limit factors, for refusals."""

Row = dict[str, object]


def promises(row: str, trials: Sequence[Trial]) -> Row:
    """Searches, certified, stated probability, share kept with its interval, and cost."""
    certified = [trial for trial in trials if trial.certified]
    kept = sum(trial.kept is True for trial in certified)
    ratios = np.array([trial.ratio for trial in trials if trial.ratio is not None])
    return {
        "what differs between a probe and the run": ALL[row].words,
        "searches": len(trials),
        "certified": _percent(len(certified), len(trials)),
        "stated": _stated(certified),
        "kept": f"{100 * kept / len(certified):.2f} %" if certified else "-",
        "95 % interval": _interval(kept, len(certified)),
        "broken": len(certified) - kept,
        "moved": sum(trial.launches > 1 for trial in certified),
        "over a limit": sum(trial.over for trial in trials),
        "median": f"{np.median(ratios):.3f}" if ratios.size else "-",
        "mean": f"{ratios.mean():.3f}" if ratios.size else "-",
        "probing": f"{100 * np.mean([trial.probing for trial in trials]):.1f} %",
    }


def refusals(row: str, trials: Sequence[Trial]) -> Row:
    """Refused, wrongly refused by limit factor, and the spending before."""
    refused = [trial for trial in trials if not trial.certified]
    found: Row = {
        "refusals": ALL[row].words,
        "refused": len(refused),
        "wrongly": sum(trial.possible for trial in refused),
    }
    for band, (least, below) in BANDS.items():
        within = [trial for trial in refused if least <= trial.factor < below]
        posed = [trial for trial in trials if least <= trial.factor < below and trial.possible]
        wrong = sum(trial.possible for trial in within)
        found[f"wrong of refused, {band}"] = f"{wrong} of {len(within)}"
        found[f"wrong of possible, {band}"] = f"{_percent(wrong, len(posed))} of {len(posed)}"
    spent = [trial.probing for trial in refused]
    found["spent first"] = f"{100 * np.mean(spent):.1f} %" if spent else "-"
    return found


def ways_out(row: str, trials: Sequence[Trial]) -> Row:
    """How often the first relaxation that a refusal names is sufficient."""
    refused = [trial for trial in trials if not trial.certified]
    named = [trial for trial in refused if trial.named]
    enough = {
        "enough": [trial.relaxed for trial in named],
        "with 2 % more": [trial.relaxed_more for trial in named],
        "with the earlier run known": [trial.relaxed_known for trial in named],
    }
    shares = {name: f"{_percent(sum(x is True for x in each), len(each))}" for name, each in enough.items()}
    return {"ways out": ALL[row].words, "refused": len(refused), "named": len(named), **shares}


def markdown(rows: Iterable[Mapping[str, object]]) -> str:
    """A Markdown table of rows with the same columns."""
    rows = list(rows)
    if not rows:
        return ""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(column, "")) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _percent(some: int, of: int) -> str:
    return f"{100 * some / of:.1f} %" if of else "-"


def _interval(kept: int, certified: int) -> str:
    """The interval of Clopper and Pearson."""
    if not certified:
        return "-"
    interval = stats.binomtest(kept, certified).proportion_ci()
    return f"{100 * interval.low:.2f} to {100 * interval.high:.2f} %"


def _stated(certified: Sequence[Trial]) -> str:
    stated = [trial.confidence for trial in certified if trial.confidence is not None]
    if not stated:
        return "not stated"
    least, most = min(stated), max(stated)
    return f"{100 * least:g} %" if least == most else f"{100 * least:.1f} to {100 * most:.1f} %"
