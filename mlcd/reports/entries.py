"""Ledger entries in words: a sentence for each, and the rows of a run's ledger table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcd.core.backend import Purpose
from mlcd.core.job import Job
from mlcd.core.ledger import Decided, LimitsChanged, Line, Refused, Reserved, Settled, Started, Voided
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.reports.functions.words import work_words
from mlcd.reports.words import goal_words, result_words


def line_words(line: Line, job: Job) -> str:
    """An entry as a sentence."""
    match line.entry:
        case Started(job=begun, provenance=provenance, space=space):
            wanted = goal_words(begun.goal, begun.target, begun.ask)
            size = counted(len(space), "configuration")
            return f"{begun.name} begins: {provenance}, {begun.search.method}, {wanted}, {size}"
        case Reserved(launch=launch, because=because):
            where = work_words(job.ask, launch) if isinstance(job.ask, FunctionsTask) else str(launch.configuration)
            return f"{'trying' if launch.purpose is Purpose.PROBE else 'running'} {where}: {because}"
        case Settled(measurement=m):
            took = f"{format_duration(m.seconds)}, {format_usd(m.usd)}"
            return f"{m.configuration}: {result_words(m, job.ask)}; {took}"
        case Voided(launch=launch, because=because):
            return f"{launch.configuration} was not started: {because}"
        case Refused(configuration=configuration, because=because):
            return f"{configuration} refused: {because}"
        case Decided(decision=decision) if decision.configuration is None:
            return f"nothing can be chosen: {decision.binding or decision.because}"
        case Decided(decision=decision):
            return f"{decision.configuration} chosen: {decision.because}"
        case LimitsChanged(because=because):
            return because
        case entry:
            return f"{entry.kind}: {entry.because}"


def ledger_rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Every entry with its amounts, and the money spent so far, which only settled entries add to."""
    rows, spent_usd = [], 0.0
    first = lines[0].entry
    assert isinstance(first, Started), "a run begins with its start"
    for line in lines:
        configuration, usd, seconds, because = _amounts(line, first.job)
        spent_usd += usd or 0.0 if isinstance(line.entry, Settled) else 0.0
        rows.append(
            {
                "seq": line.seq,
                "at": line.written_at.isoformat(),
                "elapsed_s": line.elapsed_s,
                "kind": line.entry.kind,
                "configuration": configuration,
                "usd": usd,
                "seconds": seconds,
                "because": because,
                "spent_usd": spent_usd,
            }
        )
    return rows


def _amounts(line: Line, job: Job) -> tuple[str, float | None, float | None, str]:
    match line.entry:
        case Started(on=on):
            return "", None, None, f"{job.name} on {on}, {goal_words(job.goal, job.target, job.ask)}"
        case Reserved(launch=launch) as entry:
            return str(launch.configuration), entry.worst_usd, entry.worst_s, entry.because
        case Settled(measurement=m):
            return str(m.configuration), m.usd, m.seconds, result_words(m, job.ask)
        case Voided(launch=launch, because=because):
            return str(launch.configuration), 0.0, 0.0, because
        case Refused(configuration=configuration, because=because):
            return str(configuration), None, None, because
        case Decided(decision=decision):
            return str(decision.configuration or "none"), None, None, decision.because
        case entry:
            return "", None, None, entry.because
