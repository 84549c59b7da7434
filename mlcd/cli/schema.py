"""mlcd schema: JSON Schema of what MLCD prints, serves and reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mlcd.cli.options import print_json
from mlcd.planners.jobfile.schema import job_schema
from mlcd.reports.events import events_schema
from mlcd.reports.run_document import run_schema
from mlcd.service.web.app import api_document

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "run": run_schema,
    "events": events_schema,
    "api": api_document,
    "job": job_schema,
}


@click.command()
@click.argument("of", type=click.Choice(tuple(SCHEMAS)), default="run", metavar="[WHAT]")
def schema(of: str) -> None:
    """Print a JSON Schema: of a run, its events, the API, or a job file.

    WHAT is run (-o json of a run; the default), events (a line of --watch-json), api (OpenAPI) or job (a job file).

    \b
    mlcd schema run
    mlcd schema api
    mlcd schema job > job.schema.json
    """
    print_json(SCHEMAS[of]())
