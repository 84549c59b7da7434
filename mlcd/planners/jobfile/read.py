"""From a text to a job, or to the one line that says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from yaml.reader import ReaderError

from mlcd.core.errors import JobFileError, nearest
from mlcd.core.job import Job
from mlcd.core.planner import planner_named, planner_names
from mlcd.planners.jobfile.blocks import FORMER_NAMES, Block, block_for
from mlcd.planners.jobfile.keys import listed

MERGE = "tag:yaml.org,2002:merge"
MOST_VALUES = 100_000
"""Aliases of aliases double with every line: what nobody has written by hand is not read to its end."""

Trail = tuple[str | int, ...]
"""The keys and positions that lead to a value."""
Marks = Mapping[Trail, yaml.Mark]
TASK_KEYS = (
    *("name", "workdir", "num_nodes", "setup", "run", "envs", "secrets", "file_mounts", "volumes", "resources"),
    *("service", "config", "inputs", "outputs"),
)
"""What SkyPilot lets a task say; passed on untouched."""


def read_yaml(text: str, path: Path) -> tuple[Any, Marks]:
    """The text as values, and where each of them stands."""
    marks: dict[Trail, yaml.Mark] = {}
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None, marks
        _mark(root, (), marks, path, ())
        return loader.construct_document(root), marks
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = _where(path, mark) if mark is not None else str(path)
        raise JobFileError(f"{where}: not YAML: {', '.join(filter(None, (error.context, error.problem)))}") from None
    except ReaderError as error:
        before = text[: error.position].split("\n")
        where = f"{path}:{len(before)}:{len(before[-1]) + 1}"
        raise JobFileError(f"{where}: not YAML: the character #x{error.character:04x} is not allowed") from None
    except (yaml.YAMLError, ValueError) as error:
        raise JobFileError(f"{path}:1:1: not YAML: {error}") from None
    except RecursionError:
        raise JobFileError(f"{path}:1:1: nested too deeply to be read") from None


def _mark(
    node: yaml.Node, trail: Trail, marks: dict[Trail, yaml.Mark], path: Path, around: tuple[yaml.Node, ...]
) -> None:
    """Note where everything stands, and refuse what a job cannot say: a key twice, a loop, bytes."""
    where = _where(path, node.start_mark)
    if node in around:
        raise JobFileError(f"{where}: an alias stands inside what it stands for; write it out")
    if node.tag == "tag:yaml.org,2002:binary":
        raise JobFileError(f"{where}: binary values cannot be kept; write text, or a path to a file")
    if len(marks) > MOST_VALUES:
        raise JobFileError(f"{where}: more than {MOST_VALUES:,} values, aliases written out; say less")
    around = (*around, node)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            where = _where(path, key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise JobFileError(f"{where}: a key must be a plain word")
            if key.tag != MERGE:
                key.tag = "tag:yaml.org,2002:str"  # YAML reads the key `on` as the boolean true
            inside = (*trail, key.value)
            if inside in marks:
                raise JobFileError(f"{where}: '{key.value}' is written twice")
            marks[inside] = key.start_mark
            _mark(value, inside, marks, path, around)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            marks[(*trail, i)] = value.start_mark
            _mark(value, (*trail, i), marks, path, around)


def _where(path: Path, mark: yaml.Mark) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}"


def at(path: Path, marks: Marks, where: Trail) -> str:
    """'job.yaml:14:3: ' for the innermost part of this path that is in the file."""
    for length in range(len(where), 0, -1):
        if (mark := marks.get(where[:length])) is not None:
            return f"{_where(path, mark)}: "
    return f"{path}:1:1: "


def task_of(written: Mapping[str, Any], path: Path, marks: Marks) -> dict[str, Any]:
    """The task, checked where the search will read it. Secrets keep their names only: a ledger is no safe."""
    if isinstance(written.get("name"), dict | list):
        raise JobFileError(at(path, marks, ("name",)) + "name: expected a word, such as resnet50")
    _check_resources(written.get("resources") or {}, path, marks)
    _check_processes(written, path, marks)
    task = {key: value for key, value in written.items() if key in TASK_KEYS}
    if isinstance(task.get("secrets"), dict):
        task["secrets"] = dict.fromkeys(task["secrets"])
    return task


def _check_processes(written: Mapping[str, Any], path: Path, marks: Marks) -> None:
    """What processes are started with: no system takes a zero byte there, or a variable whose name is none."""
    for key in ("setup", "run", "workdir"):
        if "\0" in str(written.get(key)):
            raise JobFileError(at(path, marks, (key,)) + f"{key}: has a zero byte in it; take it out")
    envs = written.get("envs") or {}
    if not isinstance(envs, dict):
        raise JobFileError(at(path, marks, ("envs",)) + "envs: expected names and values, such as `EPOCHS: 90`")
    for name, value in envs.items():
        if not re.fullmatch(r"[^=\0]+", str(name)) or "\0" in str(value):
            mistake = f"envs {str(name)!r}: expected a variable's name, such as EPOCHS, and a value without zero bytes"
            raise JobFileError(at(path, marks, ("envs", name)) + mistake)


def _check_resources(resources: Any, path: Path, marks: Marks) -> None:
    """What the search reads of SkyPilot's `resources`; the rest is SkyPilot's to judge."""
    if not isinstance(resources, dict):
        raise JobFileError(at(path, marks, ("resources",)) + "resources: expected keys such as `accelerators: A100:8`")
    for key in ("any_of", "ordered"):
        if key in resources:
            mistake = f"{key}: not read by the search; name the types in `mlcd: search: instances:` instead"
            raise JobFileError(at(path, marks, ("resources", key)) + mistake)
    for key in ("cpus", "memory"):
        value = resources.get(key)
        if value is not None and not re.fullmatch(r"\d+(\.\d+)?\+?", str(value)):
            mistake = f"{key} '{value}': expected a number, such as 16, or 16+ for at least that many"
            raise JobFileError(at(path, marks, ("resources", key)) + mistake)
    wanted = resources.get("accelerators") or {}
    counts = wanted.items() if isinstance(wanted, dict) else [str(w).partition(":")[::2] for w in listed(wanted)]
    for name, count in counts:
        if not re.fullmatch(r"[1-9]\d*|", str(count or "")):
            mistake = f"accelerators '{name}:{count}': expected a type and a whole number, such as A100:8"
            raise JobFileError(at(path, marks, ("resources", "accelerators")) + mistake)


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


def parse_job(text: str, path: Path, *, reads_files: bool = True) -> Job:
    """The job that a text describes; `path` names it in messages, and relative recordings are beside it.

    `reads_files`: whether it may name a file of this machine that is read now.
    """
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
    beside = {"folder": path.parent if reads_files else None, "task": task}
    try:
        block = model.model_validate(written["mlcd"], context=beside)
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
            reason = str(mistake["ctx"]["error"])
            return start + (f"{name} {reason}" if reason.startswith("'") else reason)
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
