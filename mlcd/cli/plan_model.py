"""`mlcd plan --model config.json`: the question without a job file, of a script that would accept any plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from mlcd.cli.options import parsed_by
from mlcd.core.errors import JobFileError, UserError
from mlcd.core.job import Job
from mlcd.core.units import parse_count
from mlcd.planners.jobfile.read import parse_job
from mlcd.planners.train.nouns import Adapter
from mlcd.planners.train.plans.told import OWN

NAMES = ("model", "tokens", "sequence", "global_batch", "adapter")
USUAL = {"sequence": 4_096, "global_batch": 256}
ACCEPTED = {
    "tensor": "1..8",
    "pipeline": "1..4",
    "micro_batch": "1..16",
    "sharding": ["none", "zero2", "zero3"],
    "checkpointing": ["none", "full"],
}
"""Of a script that accepts what most do."""
MOST_NODES = 16

model_options = (
    click.option("--model", metavar="FILE", help="Without a job file: the config.json of a model to train."),
    click.option("--tokens", metavar="COUNT", callback=parsed_by(parse_count), help="With --model: how many, as 300M."),
    click.option("--sequence", metavar="INTEGER", type=click.IntRange(1), help="With --model: tokens of one; 4096."),
    click.option(
        "--global-batch", metavar="INTEGER", type=click.IntRange(1), help="With --model: sequences of a step; 256."
    ),
    click.option("--adapter", type=click.Choice([*map(str, Adapter)]), help="With --model: what is trained; full."),
)


def job_asked(job_path: Path | None, told: Mapping[str, Any]) -> Job | None:
    """The job of the options; None if they are of a job file."""
    given = [name for name in NAMES if told[name] is not None]
    if (job_path is None) == (told["model"] is None):
        raise UserError("name a job file, or a model: mlcd plan --model config.json --tokens 300M")
    if job_path is not None:
        if given:
            raise UserError(f"--{given[0].replace('_', '-')} goes with --model; a job file says it in `mlcd:`")
        return None
    if told["tokens"] is None:
        raise UserError("--tokens: on how many will it be trained? Such as --tokens 300M")
    return _job(told)


def _job(told: Mapping[str, Any]) -> Job:
    path = Path(told["model"]).absolute()
    knobs = {field: {"env": OWN[field], "values": values} for field, values in ACCEPTED.items()}
    block = {
        "model": {"config": str(path)},
        "work": {"tokens": told["tokens"]},
        **{name: told[name] or usual for name, usual in USUAL.items()},
        "plan": {**knobs, "adapter": str(told["adapter"] or Adapter.FULL)},
        "search": {"nodes": f"1..{MOST_NODES}"},
    }
    name = path.parent.name if path.suffix == ".json" else path.name
    try:
        return parse_job(yaml.safe_dump({"name": name, "mlcd": block}), Path("options"))
    except JobFileError as error:
        raise UserError(re.sub(r"^options:\d+:\d+: ", "", str(error))) from None
