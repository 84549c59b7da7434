"""From a text to a job, or to the one line that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from mlcd.core.errors import JobFileError
from mlcd.core.job import Job
from mlcd.core.planner import planner_named, planner_names
from mlcd.planners.jobfile.blocks import FORMER_NAMES, Block, block_for
from mlcd.planners.jobfile.keys import nearest
from mlcd.planners.jobfile.marks import Marks, Trail, at, read_yaml
from mlcd.planners.jobfile.task import TASK_KEYS, task_of


def load_job(path: str | Path) -> Job:
    """The job that a file describes; `JobFileError` says what is wrong, and where."""
    path = Path(path)
    try:
        str(path.absolute()).encode()  # the ledger is text, and keeps the folder
        text = path.read_text(encoding="utf-8")
    except UnicodeEncodeError:
        raise JobFileError(f"{str(path)!a}: not text in UTF-8; rename it") from None
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
    task, model = task_of(written, path, marks), block_for(map(str, written["mlcd"]))
    try:
        block = model.model_validate(written["mlcd"])
    except ValidationError as error:
        raise JobFileError(_first_mistake(error, model, path, marks)) from None
    return block.job(str(written.get("name") or path.stem), task, path.parent)


def _first_mistake(error: ValidationError, model: type[Block], path: Path, marks: Marks) -> str:
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
            return start + f"unknown key '{name}': {nearest(name, _known_keys(model, inside[:-1]))}"
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


def _known_keys(model: type[BaseModel], inside: Sequence[str | int]) -> list[str]:
    """The keys of the block in which a mistake is; of the whole block, those of every planner that has one, too."""
    if not inside:
        blocks = [name for name in planner_names() if planner_named(name).block is not None]
        return [*(name for name in model.model_fields if name not in FORMER_NAMES), *blocks]
    for part in inside:
        kinds = get_args(model.model_fields[str(part)].annotation) or (model.model_fields[str(part)].annotation,)
        model = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
    return list(model.model_fields)
