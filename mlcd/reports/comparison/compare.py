"""Compare runs, using only their ledgers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.core.backend import Provenance
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import format_confidence, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.service_level import at_best_level
from mlcd.reports import answer as machines_page
from mlcd.reports.comparison.document import (
    ComparedCell,
    ComparedPaths,
    ComparedRow,
    ComparedRun,
    ComparedSection,
    Comparison,
)
from mlcd.reports.comparison.jobs import keys_of
from mlcd.reports.comparison.paths import measures, path_of
from mlcd.reports.functions import page as functions_page
from mlcd.reports.headline import headline
from mlcd.reports.serve import page as serve_page
from mlcd.reports.serve.words import UNITS
from mlcd.reports.story import Story
from mlcd.reports.view.certificate import certificate
from mlcd.reports.view.page import Certificate, CertificateTerm
from mlcd.reports.view.summary import Summary, standing_of
from mlcd.reports.words import outcome_words

MOST_COMPARED = 6
MOST_PROBED = 60
"""Most configurations that are listed."""
LONGEST_VALUE = 2_000
NOTHING = "–"
CARDS_WITH_OWN_ROW = {
    "Budget",
    "Deadline",
    "Limits",
    "Probes",
    "Trials",
    "Spent on probing",
    "Spent on trials",
    "Calibration",
}
"""Key figures of a run's page that are left out here, since they have a row of their own."""


@dataclass(frozen=True)
class _Run:
    """One of the compared runs."""

    summary: Summary
    story: Story
    certificate: Certificate | None

    @property
    def cards(self) -> dict[str, ComparedCell]:
        """The key figures of its page, by name."""
        page = {ServingTask: serve_page, FunctionsTask: functions_page}.get(type(self.story.job.ask), machines_page)
        return {name: ComparedCell(words=value, note=note) for name, value, note in page.cards(self.story)}

    @property
    def probing(self) -> list[Measurement]:
        return [probe.measurement for probe in self.story.probes]


def compare(runs: Sequence[tuple[Summary, Story]]) -> Comparison:
    """Compare these runs, in this order; each has begun."""
    compared = [_Run(summary, story, certificate(story)) for summary, story in runs]
    by, shared = _shared([story for _, story in runs])
    sections = [
        ComparedSection(title="Answer", rows=_answers(compared)),
        ComparedSection(title="Certificate", rows=_certificates(compared)),
        ComparedSection(title="Limits", rows=_limits(compared)),
        ComparedSection(title="Costs", rows=_costs(compared)),
    ]
    return Comparison(
        runs=[_run(each, by if each.story.run in shared else None) for each in compared],
        sections=sections,
        probed=_probed(compared),
        job=_jobs(compared),
        paths=by,
        notes=_notes(compared, by, shared),
    )


def _run(run: _Run, by: ComparedPaths | None) -> ComparedRun:
    story, decision = run.story, run.story.decision
    seconds, usd = _totals(story)
    return ComparedRun(
        summary=run.summary,
        headline=headline(story) or run.summary.chosen or standing_of(run.summary.status, run.summary.driven),
        certified=decision.certified if decision is not None else None,
        total_s=seconds,
        total_usd=usd,
        probes=len(story.probes),
        probing_usd=sum(m.usd for m in run.probing),
        probing_s=sum(m.seconds for m in run.probing),
        final_usd=sum(m.usd for m in story.account.final_runs),
        final_s=sum(m.seconds for m in story.account.final_runs),
        path=path_of(story, by) if by is not None else [],
    )


def _totals(story: Story) -> tuple[float | None, float | None]:
    """Total time and cost; unknown for a service, and for functions until they are done."""
    if isinstance(story.job.ask, ServingTask | FunctionsTask) and story.account.ended is None:
        return None, None
    seconds, usd, _ = machines_page.totals(story)
    return (seconds, usd) if story.decision is not None and story.decision.configuration is not None else (None, None)


def _answers(runs: Sequence[_Run]) -> list[ComparedRow]:
    """Status, decision, and the key figures that any of the runs has."""
    cards = [run.cards for run in runs]
    names = dict.fromkeys(name for each in cards for name in each if name not in CARDS_WITH_OWN_ROW)
    return [
        _row("Status", [standing_of(run.summary.status, run.summary.driven) for run in runs]),
        _row("Decided", [run.summary.chosen for run in runs]),
        *(_of_cells(name, [each.get(name) for each in cards]) for name in names),
    ]


def _certificates(runs: Sequence[_Run]) -> list[ComparedRow]:
    found = [run.certificate for run in runs]
    decided = [run.story.decision for run in runs]
    verdicts = [None if each is None else "certified" if each.certified else "not certified" for each in decided]
    sure = [each.confidence if each is not None else None for each in found]
    rows = [
        _row("Decision", verdicts),
        _row("Confidence", [None if each is None else format_confidence(each) for each in sure]),
        _row("Worst-case cost", [_term(each, "usd") for each in found]),
        _row("Worst-case time", [_term(each, "s") for each in found]),
    ]
    return [row for row in rows if any(cell.words != NOTHING for cell in row.cells)]


def _term(found: Certificate | None, unit: str) -> str | None:
    """'$3.20 + $41.10 ≤ $100.00'."""
    term: CertificateTerm | None = next((each for each in (found.terms if found else ()) if each.unit == unit), None)
    if term is None:
        return None
    words = format_usd if unit == "usd" else format_duration
    return f"{words(term.gone)} + {words(term.kept)} {'≤' if term.holds else '>'} {words(term.limit)}"


def _limits(runs: Sequence[_Run]) -> list[ComparedRow]:
    goals = [run.story.goal for run in runs]
    live = [run.story.started.provenance is Provenance.LIVE for run in runs]
    return [
        _row("Goal", [run.summary.goal_words for run in runs]),
        _row("Budget", ["none" if goal.budget_usd is None else format_usd(goal.budget_usd) for goal in goals]),
        _row("Deadline", ["none" if goal.deadline_s is None else format_duration(goal.deadline_s) for goal in goals]),
        _row("Where", [run.summary.on for run in runs]),
        _row("Money", ["real" if real else run.summary.provenance for run, real in zip(runs, live, strict=True)]),
    ]


def _costs(runs: Sequence[_Run]) -> list[ComparedRow]:
    finals = [run.story.account.final_runs for run in runs]
    return [
        _of_cells("Probes", [_counted(run.probing) for run in runs]),
        _of_cells("Spent on probes", [_took(run.probing) for run in runs]),
        _of_cells("Spent on the job itself", [_took(final) if final else None for final in finals]),
        _row("Total spent", [format_usd(run.summary.spent_usd) for run in runs]),
        _row("Elapsed time", [format_duration(run.summary.elapsed_s) for run in runs]),
    ]


def _counted(probes: Sequence[Measurement]) -> ComparedCell:
    failed = sum(m.outcome is not Outcome.OK for m in probes)
    return ComparedCell(words=str(len(probes)), note=f"{failed} failed" if failed else "")


def _took(launches: Sequence[Measurement]) -> ComparedCell:
    usd, seconds = sum(m.usd for m in launches), sum(m.seconds for m in launches)
    return ComparedCell(words=format_usd(usd), note=format_duration(seconds))


def _probed(runs: Sequence[_Run]) -> ComparedSection:
    """The newest probe of each configuration: rate, cost and time. Configurations that most runs probed come first."""
    newest = [{str(probe.measurement.configuration): probe for probe in run.story.probes} for run in runs]
    tried = Counter(label for each in newest for label in each)
    order = sorted(tried, key=lambda label: -tried[label])  # stable: ties stay in order
    rows = []
    for label in order[:MOST_PROBED]:
        cells: list[ComparedCell | None] = []
        for run, each in zip(runs, newest, strict=True):
            probe = each.get(label)
            cells.append(None if probe is None else _result(run.story, probe.measurement, probe is run.story.chosen))
        rows.append(_of_cells(label, cells))
    return ComparedSection(title="What was probed", rows=rows, left_out=max(0, len(order) - MOST_PROBED))


def _result(story: Story, m: Measurement, chosen: bool) -> ComparedCell:
    note = f"{'chosen, ' if chosen else ''}{format_usd(m.usd)}, {format_duration(m.seconds)}"
    if not m.ok:
        return ComparedCell(words=outcome_words(m.outcome), note=note)
    ask = story.job.ask
    rate = at_best_level(story.job, m).rate if isinstance(ask, ServingTask) else m.rate
    unit = UNITS[ask.counted] if isinstance(ask, ServingTask) else "samples/s"
    return ComparedCell(words=f"{format_rate(rate)} {unit}", note=note)


def _jobs(runs: Sequence[_Run]) -> ComparedSection:
    """Every key that any of the job files sets, those that differ first."""
    jobs = [keys_of(run.story.started) for run in runs]
    rows = [_row(key, [job.get(key) for job in jobs]) for key in dict.fromkeys(key for job in jobs for key in job)]
    return ComparedSection(title="Job", rows=sorted(rows, key=lambda row: not row.differs))


def _shared(stories: Sequence[Story]) -> tuple[ComparedPaths | None, set[str]]:
    """The measure that most runs share, and the runs that have it; None if no two share one."""
    found = [(story.run, by) for story, by in zip(stories, measures(stories), strict=True) if by is not None]
    most = Counter(by.name for _, by in found).most_common(1)
    if not most or most[0][1] < 2:
        return None, set()
    shared = [(run, by) for run, by in found if by.name == most[0][0]]
    return shared[0][1], {run for run, _ in shared}


def _notes(runs: Sequence[_Run], by: ComparedPaths | None, shared: set[str]) -> list[str]:
    """Notes on what must not be compared."""
    notes, others = [], [run.story.run for run in runs if run.story.run not in shared]
    kinds = {run.summary.kind for run in runs}
    if len(kinds) > 1:
        notes.append(
            f"The runs are of different kinds ({', '.join(sorted(kinds))}): only limits and costs can be compared."
        )
    if by is None:
        notes.append("No two runs have the same measure, so there is no chart of the best so far.")
    elif others:
        notes.append(f"The chart shows {by.name}, which these runs do not have: {', '.join(others)}.")
    money = {run.story.started.provenance for run in runs}
    if Provenance.LIVE in money and len(money) > 1:
        unreal = [run.story.run for run in runs if run.story.started.provenance is not Provenance.LIVE]
        notes.append(f"These runs spent no real money: {', '.join(unreal)}.")
    work = {run.story.job.work_samples for run in runs if not isinstance(run.story.job.ask, ServingTask)}
    if len(work) > 1:
        notes.append("The jobs have different amounts of work; times and costs are for each one's own work.")
    if undecided := [run.story.run for run in runs if run.story.decision is None]:
        notes.append(f"Not decided yet, so their figures are not final: {', '.join(undecided)}.")
    return notes


def _row(name: str, words: Sequence[str | None]) -> ComparedRow:
    cut = [each if each is None or len(each) <= LONGEST_VALUE else f"{each[:LONGEST_VALUE]} …" for each in words]
    cells = [ComparedCell(words=each or NOTHING) for each in cut]
    return ComparedRow(name=name, cells=cells, differs=len(set(words)) > 1)


def _of_cells(name: str, cells: Sequence[ComparedCell | None]) -> ComparedRow:
    found = [each or ComparedCell(words=NOTHING) for each in cells]
    return ComparedRow(name=name, cells=found, differs=len({each.words for each in found}) > 1)
