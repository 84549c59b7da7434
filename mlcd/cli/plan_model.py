"""`mlcd plan --model config.json`: a preview without a job file, for a script that accepts any usual training plan."""

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
"""Plan values that most training scripts accept."""
MICRO_BATCH, MICRO_BATCH_TOKENS = 16, 65_536
"""The largest micro-batch; for short sequences, such as images, as many as fit this number of tokens."""
MOST_NODES = 16

HUB = r"[\w.-]+/[\w.-]+"
"""The name of a model on the Hugging Face hub."""


def _size(written: str) -> int:
    return int(whole(written))


model_options = (
    click.option("--model", metavar="FILE", help="Instead of a job file: the config.json of the model to train."),
    click.option(
        "--tokens",
        metavar="COUNT",
        callback=parsed_by(parse_count),
        help="With --model: tokens to train on, such as 300M.",
    ),
    click.option(
        "--sequence",
        metavar="COUNT",
        callback=parsed_by(_size),
        help="With --model: tokens in a sequence. Default: 4096, or the longest that the model takes.",
    ),
    click.option(
        "--global-batch",
        metavar="COUNT",
        callback=parsed_by(_size),
        help="With --model: sequences in a step. Default: 256.",
    ),
    click.option(
        "--adapter",
        type=click.Choice([*map(str, Adapter)], case_sensitive=False),
        help="With --model: what is trained, all weights or an adapter. Default: full.",
    ),
)


def job_of_model(job_path: Path | None, options: Mapping[str, Any]) -> Job | None:
    """The job that --model and its options describe; None if there is a job file."""
    given = [name for name in NAMES if options[name] is not None]
    if (job_path is None) == (options["model"] is None):
        raise UserError("give either a job file or a model, as in mlcd plan --model config.json --tokens 300M")
    if job_path is not None:
        if given:
            raise UserError(
                f"--{given[0].replace('_', '-')} works only with --model; in a job file it is a key of `mlcd:`"
            )
        return None
    if options["tokens"] is None:
        raise UserError("--model needs the number of tokens to train on, such as --tokens 300M")
    return _job(options)


def _job(options: Mapping[str, Any]) -> Job:
    path = Path(options["model"]).absolute()
    name = options["model"]
    if not path.exists() and path.suffix != ".json" and re.fullmatch(HUB, name):
        fetch = f"hf download {name} {FILE} --local-dir ."
        raise UserError(f"{name}: no such file; if it is a model of the hub, fetch its config first: {fetch}")
    sequence = options["sequence"] or _usual_sequence(path)
    accepted = ACCEPTED | {"micro_batch": f"1..{_largest_micro_batch(sequence)}"}
    knobs = {field: {"env": OWN[field], "values": values} for field, values in accepted.items()}
    block = {
        "model": {"config": str(path)},
        "work": {"tokens": options["tokens"]},
        "sequence": sequence,
        "global_batch": options["global_batch"] or USUAL_GLOBAL_BATCH,
        "plan": {**knobs, "adapter": str(options["adapter"] or Adapter.FULL)},
        "search": {"nodes": f"1..{MOST_NODES}"},
    }
    folder = path if path.is_dir() else path.parent
    name = folder.name if path.is_dir() or path.name == FILE else path.stem
    try:
        return parse_job(yaml.safe_dump({"name": name, "mlcd": block}), Path("options"))
    except JobFileError as error:
        raise UserError(re.sub(r"^options:\d+:\d+: ", "", str(error))) from None


def _usual_sequence(path: Path) -> int:
    """The usual length, or the longest that the model takes; for images, the number of patches plus one."""
    try:
        config, where = read_config(path)
        sizes = any_architecture(config, where)
    except (UserError, ArithmeticError, AttributeError, KeyError, TypeError):
        return USUAL_SEQUENCE  # parsing the job reports what is wrong
    if sizes.vocab:
        return min(USUAL_SEQUENCE, sizes.context or USUAL_SEQUENCE)
    image, patch = config.get("image_size"), config.get("patch_size")
    if not isinstance(image, int) or not isinstance(patch, int) or not 0 < patch <= image:
        raise UserError(
            "config.json does not say into how many patches an image is cut; give it as --sequence, such as 197"
        )
    return int((image // patch) ** 2 + 1)


def _largest_micro_batch(sequence: int) -> int:
    """A power of two."""
    by_tokens = MICRO_BATCH_TOKENS // sequence
    return max(MICRO_BATCH, 2 ** (by_tokens.bit_length() - 1)) if by_tokens else MICRO_BATCH
