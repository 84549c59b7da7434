"""The confirmation before real money is spent: before the first probe, or before a limit is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mlcd.cli.messages import can_ask
from mlcd.core.errors import Interrupted, UserError

if TYPE_CHECKING:
    from mlcd.core.job import Goal, Job
    from mlcd.core.ledger import Started


def agree_to_rent(first: Started, yes: bool) -> None:
    """Show what a run that costs real dollars would spend, and ask; `yes`: already confirmed."""
    from mlcd.core.runs.real_money import real_money_words, rents

    if rents(first.job.on):
        agree(real_money_words(first), yes)


def agree_to_limits(job: Job, goal: Goal, yes: bool) -> None:
    """The same for a run whose limits are changed: the user has not agreed to the new ones yet."""
    from mlcd.core.runs.real_money import most_words, rents

    if goal != job.goal and rents(job.on):
        agree(most_words(replace(job, goal=goal)), yes)


def agree(words: str, yes: bool) -> None:
    """Show this and ask whether to proceed; raises if not, or if there is no terminal to ask on."""
    if not yes and not can_ask():
        raise UserError(f"{' '.join(words.split())} No terminal to ask on: pass -y to agree; nothing was ordered")
    click.echo(words, err=True)
    if not yes and not _confirmed():
        raise Interrupted("not begun; nothing was ordered")


def _confirmed() -> bool:
    """The answer; Ctrl-C is a no."""
    try:
        return click.confirm("Proceed?", default=False, err=True)
    except click.Abort:
        click.echo(err=True)
        return False
