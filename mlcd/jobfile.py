"""Read a job file: a SkyPilot task with one more block, `mlcd:`.

Every mistake is one line that starts with file:line:column. docs/reference/job-file.md lists the keys.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from yaml.reader import ReaderError

from mlcd.errors import JobFileError
from mlcd.job import Communication, Goal, Hints, Job, Objective, Search
from mlcd.units import parse_count, parse_duration, parse_gb, parse_range, parse_usd

DEFAULT = Search()
MERGE = "tag:yaml.org,2002:merge"

Path_ = tuple[str | int, ...]
Marks = Mapping[Path_, yaml.Mark]
T = TypeVar("T")

TASK_KEYS = (
    "name",
    "workdir",
    "num_nodes",
    "setup",
    "run",
    "envs",
    "secrets",
    "file_mounts",
    "volumes",
    "resources",
    "service",
    "config",
    "inputs",
    "outputs",
)
"""What SkyPilot lets a task say; passed on untouched."""


def load_job(path: str | Path) -> Job:
    """The job that a file describes; `JobFileError` says what is wrong, and where."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise JobFileError(f"{path}: no such file; a job file is a SkyPilot task with an `mlcd:` block") from None
    except (OSError, UnicodeError) as error:
        raise JobFileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    return parse_job(text, path)


def parse_job(text: str, path: Path) -> Job:
    """The job that a text describes; `path` names it in messages, and relative recordings are beside it."""
    written, marks = _yaml(text, path)
    if not isinstance(written, dict):
        raise JobFileError(f"{path}:1:1: empty, or not a task; start with `name:`, `run:` and `mlcd:`")
    for key in written:
        if key not in (*TASK_KEYS, "mlcd"):
            raise JobFileError(_at(path, marks, (key,)) + _unknown(str(key), (*TASK_KEYS, "mlcd")))
    if not isinstance(written.get("mlcd"), dict):
        raise JobFileError(_at(path, marks, ("mlcd",)) + "the `mlcd:` block is missing; it needs at least `work:`")
    if isinstance(written.get("name"), dict | list):
        raise JobFileError(_at(path, marks, ("name",)) + "name: expected a word, such as resnet50")
    _check_resources(written.get("resources") or {}, path, marks)
    try:
        block = _Block.model_validate(written["mlcd"])
    except ValidationError as error:
        raise JobFileError(_first_mistake(error, path, marks)) from None
    task = {key: value for key, value in written.items() if key != "mlcd"}
    return block.job(str(written.get("name") or path.stem), task, path.parent)


def _check_resources(resources: Any, path: Path, marks: Marks) -> None:
    """What the search reads of SkyPilot's `resources`; the rest is SkyPilot's to judge."""
    if not isinstance(resources, dict):
        raise JobFileError(_at(path, marks, ("resources",)) + "resources: expected keys such as `accelerators: A100:8`")
    for key in ("cpus", "memory"):
        value = resources.get(key)
        if value is not None and not re.fullmatch(r"\d+(\.\d+)?\+?", str(value)):
            told = f"{key} '{value}': expected a number, such as 16, or 16+ for at least that many"
            raise JobFileError(_at(path, marks, ("resources", key)) + told)
    wanted = resources.get("accelerators") or {}
    counts = wanted.items() if isinstance(wanted, dict) else [str(w).partition(":")[::2] for w in _listed(wanted)]
    for name, count in counts:
        if not re.fullmatch(r"[1-9]\d*|", str(count or "")):
            told = f"accelerators '{name}:{count}': expected a type and a whole number, such as A100:8"
            raise JobFileError(_at(path, marks, ("resources", "accelerators")) + told)


def _listed(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [written]


def _read(parse: Callable[[Any], T]) -> BeforeValidator:
    """A unit's parser, as pydantic wants it: None stays None."""
    return BeforeValidator(lambda written: None if written is None else parse(written))


def _patterns(written: Any) -> tuple[str, ...]:
    """One pattern, or a list of them."""
    patterns = _listed(written)
    if not patterns or not all(isinstance(p, str) and p for p in patterns):
        raise ValueError(f"'{written}': expected patterns, such as [c5.*, p3.*]")
    return tuple(patterns)


def _whole(written: Any) -> float:
    """A count of things that cannot be cut: 256, 1k."""
    value = parse_count(written)
    if value < 1 or value != int(value):
        raise ValueError(f"'{written}': expected a whole number, such as 256")
    return value


def _seed(written: Any) -> int:
    if isinstance(written, bool) or not re.fullmatch(r"\d{1,18}", str(written)):
        raise ValueError(f"'{written}': expected a whole number, 0 or more")
    return int(written)


def _one_of(choices: type[Objective] | type[Communication]) -> BeforeValidator:
    def parse(written: Any) -> Any:
        known = [str(choice) for choice in choices]
        if str(written) not in known:
            raise ValueError(f"'{written}': {_nearest(str(written), known)}")
        return written

    return BeforeValidator(parse)


Usd = Annotated[float | None, _read(parse_usd)]
Seconds = Annotated[float | None, _read(parse_duration)]
Count = Annotated[float | None, _read(parse_count)]
Whole = Annotated[float | None, _read(_whole)]
Gigabytes = Annotated[float | None, _read(parse_gb)]


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Work(_Keys):
    samples: Count = None
    dataset: Count = None
    epochs: Count = None

    @model_validator(mode="before")
    @classmethod
    def _a_number_is_samples(cls, written: Any) -> Any:
        return written if isinstance(written, dict) else {"samples": written}

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> _Work:
        both = self.dataset is not None and self.epochs is not None
        if (self.samples is not None) == (self.dataset is not None or self.epochs is not None) or not (
            self.samples is not None or both
        ):
            raise ValueError("work: say either `samples: 90M`, or `dataset: 1.28M` and `epochs: 70`")
        if not math.isfinite(self.total):
            raise ValueError("work: `dataset` times `epochs` is too large to be meant")
        return self

    @property
    def total(self) -> float:
        return self.samples if self.samples is not None else (self.dataset or 0.0) * (self.epochs or 0.0)


class _Search(_Keys):
    method: str = DEFAULT.method
    nodes: Annotated[tuple[int, int], BeforeValidator(parse_range)] = DEFAULT.nodes
    instances: Annotated[tuple[str, ...], BeforeValidator(_patterns)] = DEFAULT.instances
    seed: Annotated[int, BeforeValidator(_seed)] = DEFAULT.seed


class _Block(_Keys):
    """The `mlcd:` block."""

    work: _Work
    goal: Annotated[Objective, _one_of(Objective)] = Objective.FASTEST
    budget: Usd = None
    deadline: Seconds = None
    communication: Annotated[Communication, _one_of(Communication)] = Communication.ALL_REDUCE
    parameters: Count = None
    flops_per_sample: Count = None
    batch: Whole = None
    memory: Gigabytes = None
    search: _Search = _Search()
    on: str = Job.on

    def job(self, name: str, task: Mapping[str, Any], folder: Path) -> Job:
        on = self.on
        if on.startswith("recorded:"):
            on = f"recorded:{folder / on.removeprefix('recorded:')}"
        return Job(
            name=name,
            work_samples=self.work.total,
            goal=Goal(self.goal, self.budget, self.deadline),
            communication=self.communication,
            hints=Hints(self.parameters, self.flops_per_sample, int(self.batch) if self.batch else None, self.memory),
            search=Search(self.search.method, self.search.nodes, self.search.instances, self.search.seed),
            on=on,
            task=task,
        )


def _yaml(text: str, path: Path) -> tuple[Any, Marks]:
    """The text as values, and where each of them stands."""
    marks: dict[Path_, yaml.Mark] = {}
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
    node: yaml.Node, here: Path_, marks: dict[Path_, yaml.Mark], path: Path, around: tuple[yaml.Node, ...]
) -> None:
    """Note where everything stands, and refuse what a job cannot say: a key twice, a loop, bytes."""
    where = _where(path, node.start_mark)
    if node in around:
        raise JobFileError(f"{where}: an alias stands inside what it stands for; write it out")
    if node.tag == "tag:yaml.org,2002:binary":
        raise JobFileError(f"{where}: binary values cannot be kept; write text, or a path to a file")
    around = (*around, node)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            where = _where(path, key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise JobFileError(f"{where}: a key must be a plain word")
            if key.tag != MERGE:
                key.tag = "tag:yaml.org,2002:str"  # YAML reads the key `on` as the boolean true
            there = (*here, key.value)
            if there in marks:
                raise JobFileError(f"{where}: '{key.value}' is written twice")
            marks[there] = key.start_mark
            _mark(value, there, marks, path, around)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            marks[(*here, i)] = value.start_mark
            _mark(value, (*here, i), marks, path, around)


def _where(path: Path, mark: yaml.Mark) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}"


def _at(path: Path, marks: Marks, where: Path_) -> str:
    """'job.yaml:14:3: ' for the innermost part of this path that is in the file."""
    for length in range(len(where), 0, -1):
        if (mark := marks.get(where[:length])) is not None:
            return f"{_where(path, mark)}: "
    return f"{path}:1:1: "


def _first_mistake(error: ValidationError, path: Path, marks: Marks) -> str:
    mistake = error.errors()[0]
    inside = tuple(mistake["loc"])
    where: Path_ = ("mlcd", *inside)
    # The innermost key that the user wrote: `work: abc` is about `work`, not about the `samples` it stands for.
    written = [part for i, part in enumerate(where) if where[: i + 1] in marks and isinstance(part, str)]
    name = str(inside[-1]) if mistake["type"] == "missing" else (written or ["mlcd"])[-1]
    start = _at(path, marks, where)
    match mistake["type"]:
        case "extra_forbidden":
            blocks: dict[str, type[BaseModel]] = {"search": _Search, "work": _Work}
            parent = blocks.get(str(inside[0]), _Block) if len(inside) > 1 else _Block
            return start + _unknown(name, parent.model_fields)
        case "missing":
            return start + f"`{name}` is missing from the `mlcd:` block: say how much there is to do, as in `work: 90M`"
        case "value_error":
            told = str(mistake["ctx"]["error"])
            return start + (f"{name} {told}" if told.startswith("'") else told)
        case "model_type" | "dict_type":
            return start + f"{name} '{mistake['input']}': expected keys below it"
        case _:
            return start + f"{name} '{mistake['input']}': {mistake['msg'][0].lower()}{mistake['msg'][1:]}"


def _unknown(key: str, known: Any) -> str:
    return f"unknown key '{key}': {_nearest(key, list(known))}"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else "known: " + ", ".join(known)
