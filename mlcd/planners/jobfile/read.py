"""From a text to a job, or to the one line that says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from mlcd.core.errors import JobFileError
from mlcd.core.job import Job
from mlcd.planners.functions.block import FunctionsBlock
from mlcd.planners.jobfile.blocks import Block, SearchBlock, Work
from mlcd.planners.jobfile.keys import nearest
from mlcd.planners.jobfile.marks import Marks, Trail, at, read_yaml
from mlcd.planners.jobfile.task import TASK_KEYS, task_of
from mlcd.planners.scale.block import ElasticBlock, FingerprintBlock


def load_job(path: str | Path) -> Job:
    """The job that a file describes; `JobFileError` says what is wrong, and where."""
    path = Path(path)
    try:
        str(path.absolute()).encode()  # the ledger is text, and keeps the folder
        text = path.read_text(encoding="utf-8")
    except UnicodeEncodeError:
        raise JobFileError(f"{str(path)!a}: not text in UTF-8; rename it, or write it otherwise") from None
    except FileNotFoundError:
        raise JobFileError(f"{path}: no such file; a job file is a SkyPilot task with an `mlcd:` block") from None
    except (OSError, UnicodeError) as error:
        raise JobFileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    return parse_job(text, path)


def parse_job(text: str, path: Path) -> Job:
    """The job that a text describes; `path` names it in messages, and relative recordings are beside it."""
    written, marks = read_yaml(text, path)
    if not isinstance(written, dict):
        raise JobFileError(f"{path}:1:1: empty, or not a task; start with `name:`, `run:` and `mlcd:`")
    for key in written:
        if key not in (*TASK_KEYS, "mlcd"):
            raise JobFileError(
                at(path, marks, (key,)) + f"unknown key '{key}': {nearest(str(key), (*TASK_KEYS, 'mlcd'))}"
            )
    if not isinstance(written.get("mlcd"), dict):
        raise JobFileError(at(path, marks, ("mlcd",)) + "the `mlcd:` block is missing; it needs at least `work:`")
    task = task_of(written, path, marks)
    try:
        block = Block.model_validate(written["mlcd"])
    except ValidationError as error:
        raise JobFileError(_first_mistake(error, path, marks)) from None
    return block.job(str(written.get("name") or path.stem), task, path.parent)


def _first_mistake(error: ValidationError, path: Path, marks: Marks) -> str:
    # A key that is missing may be one that is mistyped: that is told first.
    mistake = min(error.errors(), key=lambda each: each["type"] == "missing")
    inside = tuple(mistake["loc"])
    where: Trail = ("mlcd", *inside)
    # The innermost key that the user wrote: `work: abc` is about `work`, not about the `samples` it stands for.
    written = [part for i, part in enumerate(where) if where[: i + 1] in marks and isinstance(part, str)]
    name = str(inside[-1]) if mistake["type"] == "missing" else (written or ["mlcd"])[-1]
    start = at(path, marks, where)
    match mistake["type"]:
        case "extra_forbidden":
            blocks: dict[str, type[BaseModel]] = {
                "search": SearchBlock,
                "work": Work,
                "elastic": ElasticBlock,
                "functions": FunctionsBlock,
                "fingerprint": FingerprintBlock,
            }
            parent = blocks.get(str(inside[0]), Block) if len(inside) > 1 else Block
            return start + f"unknown key '{name}': {nearest(name, parent.model_fields)}"
        case "missing" if len(inside) > 1:
            return start + f"`{name}` is missing from the `{inside[-2]}:` block"
        case "missing":
            return start + f"`{name}` is missing from the `mlcd:` block: say how much there is to do, as in `work: 90M`"
        case "value_error":
            told = str(mistake["ctx"]["error"])
            return start + (f"{name} {told}" if told.startswith("'") else told)
        case "model_type" | "dict_type":
            return start + f"{name} '{mistake['input']}': expected keys below it"
        case _:
            return start + f"{name} '{mistake['input']}': {mistake['msg'][0].lower()}{mistake['msg'][1:]}"
