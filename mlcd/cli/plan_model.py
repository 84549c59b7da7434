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
from mlcd.planners.jobfile.keys import whole
from mlcd.planners.jobfile.read import parse_job
from mlcd.planners.modeling.architecture import FILE, read_config
from mlcd.planners.train.model_keys import any_architecture
from mlcd.planners.train.nouns import Adapter
from mlcd.planners.train.plans.plan_variables import OWN

NAMES = ("model", "tokens", "sequence", "global_batch", "adapter")
USUAL_SEQUENCE, USUAL_GLOBAL_BATCH = 4_096, 256
ACCEPTED = {
    "tensor": "1..8",
    "pipeline": "1..4",
    "sharding": ["none", "zero2", "zero3"],
    "checkpointing": ["none", "full"],
}
"""Of a script that accepts what most do."""
MICRO_BATCH, MICRO_BATCH_TOKENS = 16, 65_536
"""The largest micro-batch; of short sequences, such as images, as many as have so many tokens."""
MOST_NODES = 16

HUB = r"[\w.-]+/[\w.-]+"
"""The name of a model there."""


def _size(written: str) -> int:
    return int(whole(written))


model_options = (
    click.option("--model", metavar="FILE", help="Without a job file: the config.json of a model to train."),
    click.option("--tokens", metavar="COUNT", callback=parsed_by(parse_count), help="With --model: how many, as 300M."),
    click.option(
        "--sequence",
        metavar="COUNT",
        callback=parsed_by(_size),
        help="With --model: tokens of one; 4096, if it takes so many.",
    ),
    click.option(
        "--global-batch", metavar="COUNT", callback=parsed_by(_size), help="With --model: sequences of a step; 256."
    ),
    click.option(
        "--adapter",
        type=click.Choice([*map(str, Adapter)], case_sensitive=False),
        help="With --model: what is trained; full.",
    ),
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
    if not path.exists() and re.fullmatch(HUB, name := told["model"]):
        fetch = f"hf download {name} {FILE} --local-dir ."
        raise UserError(f"{name}: no such file; of a model on the hub fetch the config first: {fetch}")
    sequence = told["sequence"] or _usual_sequence(path)
    accepted = ACCEPTED | {"micro_batch": f"1..{_largest_micro_batch(sequence)}"}
    knobs = {field: {"env": OWN[field], "values": values} for field, values in accepted.items()}
    block = {
        "model": {"config": str(path)},
        "work": {"tokens": told["tokens"]},
        "sequence": sequence,
        "global_batch": told["global_batch"] or USUAL_GLOBAL_BATCH,
        "plan": {**knobs, "adapter": str(told["adapter"] or Adapter.FULL)},
        "search": {"nodes": f"1..{MOST_NODES}"},
    }
    folder = path if path.is_dir() else path.parent
    name = folder.name if path.is_dir() or path.name == FILE else path.stem
    try:
        return parse_job(yaml.safe_dump({"name": name, "mlcd": block}), Path("options"))
    except JobFileError as error:
        raise UserError(re.sub(r"^options:\d+:\d+: ", "", str(error))) from None


def _usual_sequence(path: Path) -> int:
    """As long as usual, if the model takes so many tokens; of images, their patches and one more."""
    try:
        config, where = read_config(path)
        sizes = any_architecture(config, where)
    except (UserError, ArithmeticError, AttributeError, KeyError, TypeError):
        return USUAL_SEQUENCE  # the job says what is wrong
    if sizes.vocab:
        return min(USUAL_SEQUENCE, sizes.context or USUAL_SEQUENCE)
    image, patch = config.get("image_size"), config.get("patch_size")
    if not isinstance(image, int) or not isinstance(patch, int) or not 0 < patch <= image:
        raise UserError("--sequence: in how many patches does the model see an image? Such as --sequence 197")
    return int((image // patch) ** 2 + 1)


def _largest_micro_batch(sequence: int) -> int:
    """A power of two."""
    by_tokens = MICRO_BATCH_TOKENS // sequence
    return max(MICRO_BATCH, 2 ** (by_tokens.bit_length() - 1)) if by_tokens else MICRO_BATCH
