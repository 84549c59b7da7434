"""mlcd what-if: decide again from stored probes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from mlcd.cli.options import consoles, open_ledger, output, print_json, run_name, with_options
from mlcd.cli.planner_options import options_of
from mlcd.core.errors import UserError
from mlcd.core.options import goal_again
from mlcd.core.runs.run import decide_again
from mlcd.planners.serve.caps import SERVICE_NAMES
from mlcd.planners.serve.form import asked_again
from mlcd.planners.serve.nouns import serving_task
from mlcd.reports.document import decision_of
from mlcd.reports.run_document.core import RunGoal
from mlcd.reports.terminal_run import show_decision
from mlcd.reports.uncertified_option import uncertified_option_words
from mlcd.reports.words import goal_words


@click.command("what-if")
@run_name
@with_options((*options_of("what-if"), output))
def what_if(run: str, output: str, **chosen: Any) -> None:
    """Decide again under other limits, from stored probes, at no cost.

    Options that are not given stay as in the run. The run itself does not change.

    \b
    mlcd what-if last --budget 50
    mlcd what-if last --goal cheapest --budget none --deadline 12h
    """
    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    goal, task = goal_again(account.job, chosen), serving_task(account.job)
    if task is not None:
        account = account.asking(asked_again(task, chosen))
    elif unsuitable := [option for option in SERVICE_NAMES if chosen.get(option) is not None]:
        raise UserError(f"--{unsuitable[0].replace('_', '-')} works only for runs of `mlcd serve`; '{name}' is not one")
    decision = decide_again(account, goal)
    if output == "json":
        document = decision_of(replace(account.job, goal=goal), decision, account.searched)
        goal_asked = RunGoal.model_validate(goal).model_dump(mode="json")
        print_json({"run": name, "goal": goal_asked, "decision": document.model_dump(mode="json")})
        return
    results, _ = consoles()
    results.print(f"Goal: {goal_words(goal, account.job.target, serving_task(account.job))}", markup=False)
    show_decision(results, account, decision, goal)
    label = None if decision.configuration is None else str(decision.configuration)
    if task is None and (better := uncertified_option_words(ledger.lines(name), goal, label)) is not None:
        results.print(better, markup=False)
    stored = "probes" if task is None else "trials"
    results.print(
        f"Decided from stored {stored}; nothing was spent. A new search with these limits might find a better one.",
        style="dim",
    )
