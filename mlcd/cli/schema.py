"""mlcd schema: what MLCD prints, answers and reads, as JSON Schema."""

from __future__ import annotations

import click

from mlcd.cli.options import print_json


@click.command()
@click.argument("of", type=click.Choice(("run", "api", "job")), default="run", metavar="[WHAT]")
def schema(of: str) -> None:
    """JSON Schema of a run's document, the API, or a job file.

    WHAT is run (what -o json prints of a run; the default), api (OpenAPI) or job.

    \b
    mlcd schema run
    mlcd schema api
    """
    if of == "run":
        from mlcd.reports.run_document import run_schema

        print_json(run_schema())
    elif of == "api":
        from mlcd.service.web.app import api_document

        print_json(api_document())
    else:
        from mlcd.planners.jobfile.schema import job_schema

        print_json(job_schema())
