"""The report of a run: the built page of `pages/` as one file, with the run's data inside.

The data are the answers of the API about the run, by the end of each path; the page requests them as the live one does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from mlcd.core.errors import MlcdError
from mlcd.core.ledger import Account, Line
from mlcd.core.planner import planner_of
from mlcd.planners.functions.nouns import Planned
from mlcd.reports.deploy.targets import exported
from mlcd.reports.entries import ledger_rows
from mlcd.reports.functions.rows import shown_points
from mlcd.reports.run_tables import run_tables
from mlcd.reports.tradeoff import tradeoff_of
from mlcd.reports.view.view import view_of

MOST_POINTS = 120
"""Most points of a Pareto boundary, which may have ten thousand."""
DATA = '<script type="application/json" id="run">'
"""The place in the built page after which the data is inserted."""


def page(
    lines: Sequence[Line],
    boundary: Sequence[Planned] = (),
    driven: bool = False,
    owner: str | None = None,
    team: str | None = None,
) -> str:
    """The report, from all entries of a run. `boundary`: of a run on functions, that of one epoch."""
    view, run = view_of(lines, driven, shown_points(boundary, MOST_POINTS), owner, team), lines[0].run
    answers = {
        "": {**view, "progress": []},
        "/ledger": {"run": run, "rows": ledger_rows(lines)},
        "/tables": run_tables(lines),
        "/tradeoff": tradeoff_of(lines),
        **_exports(run, lines),
    }
    data = {"run": run, "written_at": lines[-1].written_at.isoformat(), "answers": answers}
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )  # so that no text can end the script element
    before, place, after = _built().partition(DATA)
    assert place, "the built page has a place for the data"
    return f"{before}{place}{text}{after}"


def policy() -> str:
    """The Content-Security-Policy that a report has in itself: its own script may run, and nothing can be fetched."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', _built())
    assert policy is not None, "the built page has a policy"
    return policy[1]


@cache
def _built() -> str:
    return files("mlcd.reports").joinpath("static/report.html").read_text(encoding="utf-8")


def _exports(run: str, lines: Sequence[Line]) -> dict[str, Any]:
    """The decision as files; not the SkyPilot task, whose envs may hold secrets, since reports are sent to others."""
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    exports = {}
    for tool in planner_of(account.job).exports:
        try:
            exports[f"/export?to={tool}"] = exported(run, account, tool)
        except MlcdError:
            continue  # nothing was chosen, or the tool cannot run it
    return exports
