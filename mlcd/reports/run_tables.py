"""All tables of a run, as the API gives them: at the top of its page first, then what is folded below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcd.core.ledger import Line
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.again import about
from mlcd.reports.functions import page as on_functions
from mlcd.reports.serve import page as served
from mlcd.reports.story import Story
from mlcd.reports.tables import Table, expected, final_run, measured


def run_tables(lines: Sequence[Line]) -> dict[str, Any]:
    """From all entries of a run."""
    story = Story.of(lines)
    return {"run": story.run, "tables": [_document(table) for table in (*_tables(story), about(story))]}


def _tables(story: Story) -> list[Table]:
    if isinstance(story.job.ask, ServingTask):
        return [*served.asked(story), *served.trials(story)]
    if isinstance(story.job.ask, FunctionsTask):
        planned, ran = on_functions.plans(story), on_functions.ran(story)
        return [*final_run(story), *planned, *ran, *on_functions.calibrated(story)]
    return [*final_run(story), *expected(story), *measured(story)]


def _document(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "note": table.note,
        "columns": [{"name": name, "number": kind == "num"} for name, kind in table.columns],
        "rows": [list(cells) for cells in table.rows],
        "total": list(table.total),
        "chosen": list(table.chosen),
        "folded": table.folded,
    }
