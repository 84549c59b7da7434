"""--env: a job's variables on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mlcd.core.job import Job


def _parsed(ctx: click.Context, param: click.Parameter, written: tuple[str, ...]) -> dict[str, str | None]:
    for each in written:
        if not re.fullmatch(r"[A-Za-z_]\w*+(=.*)?", each, re.DOTALL):
            raise click.BadParameter(f"'{each}': expected NAME or NAME=VALUE, such as EPOCHS=90", ctx, param)
    parts = [each.partition("=") for each in written]
    return {name: value if equals else None for name, equals, value in parts}


env_option = click.option(
    "--env",
    "variables",
    multiple=True,
    callback=_parsed,
    metavar="NAME[=VALUE]",
    help="A variable of the job; without a value, the one of this shell, stored nowhere; repeatable.",
)


def with_variables(job: Job, variables: Mapping[str, str | None]) -> Job:
    """The job with these added to its `envs:`."""
    if not variables:
        return job
    envs: dict[str, Any] = {**(job.task.get("envs") or {}), **variables}
    return replace(job, task={**job.task, "envs": envs})
