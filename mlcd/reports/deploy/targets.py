"""The tools that a serving run's decision is written for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mlcd.core.errors import WrongState
from mlcd.core.ledger import Account
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.deploy.compose import compose
from mlcd.reports.deploy.deployment import Deployment, Export
from mlcd.reports.deploy.kserve import kserve
from mlcd.reports.deploy.triton import triton

TARGETS: Mapping[str, Callable[[Deployment], Export]] = {"kserve": kserve, "triton": triton, "compose": compose}


def exported(run: str, account: Account, to: str) -> dict[str, Any]:
    """The files, which of them is the main one, and what they cannot say."""
    if to == "skypilot":
        from mlcd.reports.skypilot import task_text

        if isinstance(account.job.ask, ServingTask | FunctionsTask):
            other = "kserve, triton or compose" if isinstance(account.job.ask, ServingTask) else "lambda"
            raise WrongState(f"run '{run}' is no task for machines: export it to {other}")
        return _document(run, to, "task.yaml", {"task.yaml": task_text(run, account)})
    if to == "lambda":
        from mlcd.reports.deploy.lambda_ import lambda_configuration

        text = json.dumps(lambda_configuration(run, account), indent=2) + "\n"
        return _document(run, to, "lambda.json", {"lambda.json": text})
    from mlcd.reports.deploy.deployment import deployment_of
    from mlcd.reports.deploy.targets import TARGETS

    made = TARGETS[to](deployment_of(run, account))
    notes = [f"not in the files: {told.name} = {told.value}: {told.note}" for told in made.missing]
    return _document(run, to, made.main, dict(made.files), notes)


def _document(run: str, to: str, main: str, files: dict[str, str], notes: list[str] | None = None) -> dict[str, Any]:
    return {"run": run, "to": to, "main": main, "files": files, "notes": notes or []}
