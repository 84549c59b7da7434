"""A decision as a SkyPilot task file: the user's own task, on the chosen resources."""

from __future__ import annotations

import re
from typing import Any

import yaml

from mlcd.core.errors import WrongState
from mlcd.core.ledger import Account
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.scale.nouns import batch_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.train.plans.plan_variables import plan_variables
from mlcd.reports.words import decision_words

BY_TORCHRUN = re.compile(r"\btorchrun\b|\btorch\.distributed\.(run|launch)\b")
PEERS = """\
# torchrun finds its peers by these variables, which MLCD sets as well
export PET_NNODES=$SKYPILOT_NUM_NODES PET_NODE_RANK=$SKYPILOT_NODE_RANK PET_NPROC_PER_NODE={workers}
export PET_MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n 1) PET_MASTER_PORT=29400
"""
"""Without these, torchrun would train separately on each node, on one GPU."""


def task_of(run: str, account: Account) -> dict[str, Any]:
    """The user's task with the chosen resources and number of nodes."""
    decision, ask = account.decision, account.job.ask
    if isinstance(ask, ServingTask):
        raise WrongState(f"run '{run}' serves a model: export it with --to kserve, triton, mlserver or compose")
    if isinstance(ask, FunctionsTask):
        raise WrongState(f"run '{run}' is on functions: export it with --to lambda")
    if decision is None or decision.configuration is None:
        raise WrongState(f"run '{run}' has chosen no configuration; there is nothing to export")
    configuration = decision.configuration
    offer, task = configuration.offer, dict(account.job.task)
    kept = {
        key: value
        for key, value in (task.pop("resources", None) or {}).items()
        # The decision replaces these; SkyPilot refuses an instance type beside them.
        if key not in ("infra", "cloud", "region", "zone", "instance_type", "accelerators", "cpus", "memory", "any_of")
    }
    place = "/".join(part for part in (offer.cloud, offer.region) if part)
    machine, _, attached = offer.instance_type.partition("+")  # n1-standard-8+1xT4: on GCP, GPUs come apart
    resources = {**({"infra": place} if place else {}), "instance_type": machine, **kept}
    if attached:
        resources["accelerators"] = f"{offer.accelerator}:{offer.accelerators}"
    if offer.spot:
        resources["use_spot"] = True
    task.pop("num_nodes", None)
    chosen = plan_variables(account.job, configuration)
    if batch_of(configuration) is not None:  # the tracker passes it to the script
        chosen["MLCD_BATCH"] = str(batch_of(configuration))
    if chosen:
        task["envs"] = {**(task.get("envs") or {}), **chosen}
    if BY_TORCHRUN.search(command := str(task.get("run") or "")):
        task["run"] = PEERS.format(workers=offer.workers) + command.rstrip("\n") + "\n"
    rest = {key: value for key, value in task.items() if key != "name" and value is not None}
    return {"name": account.job.name, "resources": resources, "num_nodes": configuration.nodes, **rest}


def task_text(run: str, account: Account) -> str:
    """The task as YAML, with a comment about the run on top."""
    task = task_of(run, account)
    provenance = account.started.provenance if account.started is not None else ""
    words = decision_words(account.decision, account.job.goal) if account.decision is not None else ""
    head = f"# Chosen by MLCD in run {run} ({provenance}): {words}\n"
    body: str = yaml.dump(task, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100)
    return head + body


class _Readable(yaml.SafeDumper):
    """Keeps commands of several lines readable."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text.rstrip("\n") else None)


_Readable.add_representer(str, _text)
