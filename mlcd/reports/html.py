"""The report of a run: the built page of `pages/` with its data inside, one file that asks for nothing else.

The data are what the API answers about the run, by the end of each path: the page asks for them as the live one does.
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
from mlcd.planners.functions.nouns import Planned, functions_task
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.deploy.exported import exported
from mlcd.reports.entries import ledger_rows
from mlcd.reports.functions.boundary import brief
from mlcd.reports.run_tables import run_tables
from mlcd.reports.tradeoff import tradeoff_of
from mlcd.reports.view.view import view_of

MOST_POINTS = 120
"""Of a boundary, which may have ten thousand."""
DATA = '<script type="application/json" id="run">'
"""In the built page; what follows it is the data."""


def page(
    lines: Sequence[Line],
    boundary: Sequence[Planned] = (),
    driven: bool = False,
    owner: str | None = None,
    team: str | None = None,
) -> str:
    """The report, from all entries of a run. `boundary`: of a run on functions, that of one epoch."""
    before, place, after = _built().partition(DATA)
    assert place, "the built page has a place for the data"
    return f"{before}{place}{_inside_script(answers(lines, boundary, driven, owner, team))}{after}"


def answers(
    lines: Sequence[Line],
    boundary: Sequence[Planned] = (),
    driven: bool = False,
    owner: str | None = None,
    team: str | None = None,
) -> dict[str, Any]:
    """What the API answers about the run now; `written_at`: when its last entry was written."""
    view = view_of(lines, driven, brief(boundary, MOST_POINTS), owner, team)
    run = view["summary"]["run"]
    found = {
        "": {**view, "progress": []},
        "/ledger": {"run": run, "rows": ledger_rows(lines)},
        "/tables": run_tables(lines),
        "/tradeoff": tradeoff_of(lines),
        **_exports(run, lines),
    }
    return {"run": run, "written_at": lines[-1].written_at.isoformat(), "answers": found}


def policy() -> str:
    """The Content-Security-Policy that a report has in itself: its own script may run, and nothing can be fetched."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', _built())
    assert found is not None, "the built page has a policy"
    return found[1]


@cache
def _built() -> str:
    return files("mlcd.reports").joinpath("static/report.html").read_text(encoding="utf-8")


def _exports(run: str, lines: Sequence[Line]) -> dict[str, Any]:
    """The decision as files. Not the SkyPilot task: its envs may hold secrets, and a report is there to be sent."""
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    job, found = account.job, {}
    tools = (
        ("kserve", "triton", "compose")
        if isinstance(job.ask, ServingTask)
        else ("lambda",)
        if functions_task(job)
        else ()
    )
    for tool in tools:
        try:
            found[f"/export?to={tool}"] = exported(run, account, tool)
        except MlcdError:
            continue  # nothing was chosen, or the tool cannot run it
    return found


def _inside_script(document: object) -> str:
    """JSON in which no '</script>' and no '<!--' can be read."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
