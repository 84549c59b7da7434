"""Parse YAML into values with their positions, and report what is wrong with the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import ReaderError

from mlcd.core.errors import JobFileError

MERGE = "tag:yaml.org,2002:merge"
MOST_VALUES = 100_000
"""Limit against aliases of aliases, which double the values with every line."""

Trail = tuple[str | int, ...]
"""The keys and positions that lead to a value."""
Marks = Mapping[Trail, yaml.Mark]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: its position, its key ('mlcd.search.nodes'), and a message that says what to do."""

    line: int
    column: int
    key: str
    message: str

    @property
    def instead(self) -> str | None:
        """The word that was probably meant."""
        hint = re.search(r"did you mean '([^']+)'\?$", self.message)
        return hint[1] if hint is not None else None

    def in_file(self, path: str | Path) -> str:
        """'job.yaml:12:5: budget 'abc': expected dollars'."""
        return f"{path}:{self.line}:{self.column}: {self.message}"

    def as_of_compiler(self, path: str | Path) -> str:
        """'job.yaml:12:5: mlcd.budget: 'abc': expected dollars', without repeating the key."""
        message = re.sub(rf"^{re.escape(self.key.rpartition('.')[2])}(: | (?='))", "", self.message)
        return f"{path}:{self.line}:{self.column}: {self.key}: {message}" if self.key else self.in_file(path)


class Unreadable(Exception):
    """A mistake after which the rest of the text cannot be read."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake.message)
        self.mistake = mistake


@dataclass
class Source:
    """The values of a text and their positions; with mistakes, of the readable part.

    `lost`: possible keys in a line that is not YAML and was removed.
    """

    written: Any = None
    marks: dict[Trail, yaml.Mark] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    lost: frozenset[str] = frozenset()

    def mistake(self, where: Trail, message: str, key: Trail | None = None) -> Mistake:
        """A mistake at the innermost existing part of this path. `key`: the key it is about, if that is missing."""
        inner = next((where[:n] for n in range(len(where), 0, -1) if where[:n] in self.marks), ())
        return _at(self.marks.get(inner), message, inner if key is None else key)


def read_source(text: str) -> Source:
    """Parse a text. If a single line is not YAML, report it, and parse the text without that line."""
    source, suspects = _read(text)
    lines = text.split("\n")
    for line in suspects:
        following = next((each for each in lines[line + 1 :] if each.strip()), "")
        if _depth(following) > _depth(lines[line]):  # it starts a block, whose keys would move to another block
            continue
        rest, more = _read("\n".join((*lines[:line], "", *lines[line + 1 :])))
        if not more and isinstance(rest.written, dict):
            rest.mistakes.insert(0, source.mistakes[-1])
            rest.lost = frozenset(re.findall(r"(?:^|[{,])\s*(\w+)", lines[line]))
            return rest
    return source


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read(text: str) -> tuple[Source, list[int]]:
    """Parse a text; if it is not YAML, also return the lines (from 0) that may be the cause."""
    source = Source()
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is not None:
            _mark(root, (), source, ())
            source.written = loader.construct_document(root)
    except Unreadable as error:
        source.mistakes.append(error.mistake)
    except yaml.MarkedYAMLError as error:
        no_colon = error.problem == "could not find expected ':'"  # reported at the start of the next line
        mark = (error.context_mark if no_colon else None) or error.problem_mark or error.context_mark
        why = ", ".join(filter(None, (error.context, error.problem)))
        source.mistakes.append(_at(mark, f"not YAML: {why}"))
        lines = {each.line: None for each in (mark, error.context_mark) if each is not None}
        return source, [line for line in lines if line <= text.count("\n")]
    except ReaderError as error:
        before = text[: error.position].split("\n")
        why = f"not YAML: the character #x{error.character:04x} is not allowed"
        source.mistakes.append(Mistake(len(before), len(before[-1]) + 1, "", why))
    except (yaml.YAMLError, ValueError) as error:
        source.mistakes.append(_at(None, f"not YAML: {error}"))
    except RecursionError:
        source.mistakes.append(_at(None, "nested too deeply to be read"))
    return source, []


def read_yaml(text: str, path: Path) -> tuple[Any, Marks]:
    """The values of a text and their positions; `JobFileError` for the first mistake."""
    source = read_source(text)
    if source.mistakes:
        raise JobFileError(source.mistakes[0].in_file(path))
    return source.written, source.marks


def _mark(node: yaml.Node, trail: Trail, source: Source, around: tuple[yaml.Node, ...]) -> None:
    """Record the position of every value, and remove what a job file must not have: duplicate keys, loops, bytes."""
    if node in around:
        raise Unreadable(_at(node.start_mark, "an alias inside its own anchor; write it out", trail))
    if node.tag == "tag:yaml.org,2002:binary":
        node.tag = "tag:yaml.org,2002:str"
        message = "binary values are not allowed; write text, or a path to a file"
        source.mistakes.append(_at(node.start_mark, message, trail))
    if len(source.marks) > MOST_VALUES:
        message = f"more than {MOST_VALUES:,} values, with aliases written out; write fewer"
        raise Unreadable(_at(node.start_mark, message, trail))
    around = (*around, node)
    if isinstance(node, yaml.MappingNode):
        node.value = [(key, value) for key, value in node.value if _mark_pair(key, value, trail, source, around)]
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            source.marks[(*trail, i)] = value.start_mark
            _mark(value, (*trail, i), source, around)


def _mark_pair(key: yaml.Node, value: yaml.Node, trail: Trail, source: Source, around: tuple[yaml.Node, ...]) -> bool:
    """Record the position of a key; return whether it is kept."""
    if not isinstance(key, yaml.ScalarNode):
        source.mistakes.append(_at(key.start_mark, "a key must be a plain word", trail))
        return False
    if key.tag != MERGE:
        key.tag = "tag:yaml.org,2002:str"  # YAML reads the key `on` as the boolean true
    inside = (*trail, key.value)
    if inside in source.marks:
        source.mistakes.append(_at(key.start_mark, f"'{key.value}' is written twice", inside))
        return False
    source.marks[inside] = key.start_mark
    _mark(value, inside, source, around)
    return True


def _at(mark: yaml.Mark | None, message: str, key: Trail = ()) -> Mistake:
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    return Mistake(line, column, ".".join(map(str, key)), message)


def at(path: Path, marks: Marks, where: Trail) -> str:
    """'job.yaml:14:3: ' for the innermost part of this path that is in the file."""
    return Source(marks=dict(marks)).mistake(where, "").in_file(path)
