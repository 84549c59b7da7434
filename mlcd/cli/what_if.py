"""mlcd what-if: decide again from probes that are paid for."""

from __future__ import annotations

from typing import Any

import click

from mlcd.cli.options import consoles, goal_options, new_goal, open_ledger, output, print_json, run_name, with_options

knee_too = click.option(
    "--goal", type=click.Choice(["fastest", "cheapest", "knee"]), help="What to make small; of `mlcd scale`, the knee."
)


@click.command("what-if")
@run_name
@with_options((knee_too, *goal_options[1:]))
@output
def what_if(run: str, output: str, **chosen: Any) -> None:
    """Decide again from the stored probes under another goal, at no cost."""
    from mlcd import assemble
    from mlcd.reports.document import decision_document, goal_document
    from mlcd.reports.text import show_decision

    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    goal = new_goal(account.job.goal, chosen)
    decision = assemble.what_if(name, ledger, goal)
    if output == "json":
        print_json({"run": name, "goal": goal_document(goal), "decision": decision_document(decision)})
        return
    results, _ = consoles()
    show_decision(results, account, decision, goal)
    results.print(
        "From stored probes; nothing was spent. A search with this goal from its start might have probed elsewhere.",
        style="dim",
    )
