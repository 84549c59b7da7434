"""mlcd what-if: decide again from stored probes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from mlcd.cli.options import confidence, consoles, goal_options, open_ledger, output, print_json, run_name, with_options
from mlcd.cli.serve import service_options
from mlcd.planners.form.words import GOALS
from mlcd.planners.serve.caps import SERVICE_NAMES

any_goal = click.option(
    "--goal",
    type=click.Choice(GOALS["what-if"]),
    help="What to minimise; of `mlcd scale`, the knee; of `mlcd serve`, maximise answers per dollar.",
)


@click.command("what-if")
@run_name
@with_options((any_goal, *goal_options[1:], confidence, *service_options))
@output
def what_if(run: str, output: str, **chosen: Any) -> None:
    """Decide again from the stored probes, at no cost.

    What is not given stays as in the run. The run itself does not change.

    \b
    mlcd what-if last --budget 50
    mlcd what-if last --goal cheapest --budget none --deadline 12h
    """
    from mlcd.core.errors import UserError
    from mlcd.core.options import goal_again
    from mlcd.core.runs.run import what_if as decide_what_if
    from mlcd.planners.serve.form import asked_again
    from mlcd.planners.serve.nouns import ServingTask
    from mlcd.reports.document import decision_of
    from mlcd.reports.run_document.core import RunGoal
    from mlcd.reports.text import show_decision

    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    goal, unsuitable = goal_again(account.job, chosen), [name for name in SERVICE_NAMES if chosen.get(name) is not None]
    if unsuitable and not isinstance(account.job.ask, ServingTask):
        raise UserError(f"--{unsuitable[0].replace('_', '-')} is for runs of `mlcd serve`; '{name}' is not one")
    service = asked_again(account.job.ask, chosen) if isinstance(account.job.ask, ServingTask) else None
    decision = decide_what_if(name, ledger, goal, service)
    if output == "json":
        document = decision_of(
            replace(account.job, goal=goal, ask=service or account.job.ask), decision, account.searched
        )
        goal_told = RunGoal.model_validate(goal).model_dump(mode="json")
        print_json({"run": name, "goal": goal_told, "decision": document.model_dump(mode="json")})
        return
    results, _ = consoles()
    if service is not None:
        account = account.asking(service)
    show_decision(results, account, decision, goal)
    stored = "probes" if service is None else "trials"
    results.print(
        f"From stored {stored}; nothing was spent. A search with this goal from the start might have probed others.",
        style="dim",
    )
