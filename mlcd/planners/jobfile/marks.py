"""YAML with the place of everything in it: 'job.yaml:14:3'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import ReaderError

from mlcd.core.errors import JobFileError

MERGE = "tag:yaml.org,2002:merge"
MOST_VALUES = 100_000
"""Aliases of aliases double with every line: what nobody has written by hand is not read to its end."""

Trail = tuple[str | int, ...]
"""The keys and positions that lead to a value."""
Marks = Mapping[Trail, yaml.Mark]


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
