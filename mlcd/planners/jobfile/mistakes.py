"""Find all mistakes in a job file, not only the first.

Pydantic reports wrong values, but contradictions between values only once all of them can be read. So wrong values are
removed and the rest is validated again, until there are no new errors. Errors that only come from a removal (a missing
key, or another key that needs it) are not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mlcd.core.errors import UnknownName, nearest
from mlcd.core.place import places, unknown_place
from mlcd.core.planner import DEFAULT_PLANNER, added_names, planner_named, planner_names
from mlcd.planners.jobfile.blocks import FORMER_NAMES, Block, block_for
from mlcd.planners.jobfile.source import Mistake, Source, Trail
from mlcd.planners.jobfile.task import TASK_KEYS, task_mistakes, task_of

STAND_IN = {"samples": 1}
"""Replaces an invalid `work`, without which nothing else can be validated."""


def checked(source: Source, folder: Path | None) -> tuple[Block | None, list[Mistake]]:
    """The valid part of a file's `mlcd:` block, and all mistakes; the first is the one that a run reports.

    `folder`: where files that it names are read; None: none are read.
    """
    found = list(source.mistakes)
    if not isinstance(source.written, dict):
        empty = source.mistake((), "empty, or not a task; start with `name:`, `run:` and `mlcd:`")
        return None, found or [empty]
    written, block = source.written, None
    for key in written:
        if key not in (*TASK_KEYS, "mlcd"):
            hint = nearest(str(key), (*TASK_KEYS, "mlcd"))
            found.append(source.mistake((key,), f"unknown key '{key}': {hint}"))
    meant = {each.instead for each in found}
    in_task = [source.mistake(where, what) for where, what in task_mistakes(written)]
    if isinstance(written.get("mlcd"), dict):
        reading = _Reading(source, {"folder": folder, "task": task_of(written)})
        block = reading.block()
        found += [*in_task, *reading.found]
    elif "mlcd" in meant | source.lost or ("mlcd" in written and source.lost):  # the unreadable line may have been it
        found += in_task
    else:
        missing = "the `mlcd:` block is missing; it needs at least `work:`"
        found += [source.mistake(("mlcd",), missing, ("mlcd",)), *in_task]
    return block, found


def misnamed(source: Source, block: Block) -> Iterator[Mistake]:
    """Unknown places and methods. A run checks them itself, after its options have replaced the file's values."""
    if block.on.partition(":")[0] not in places():
        yield source.mistake(("mlcd", "on"), str(unknown_place(block.on)))
    planners = {DEFAULT_PLANNER, *block.planner_blocks}
    known = [method for name in sorted(planners) for method in planner_named(name).methods]
    if not planners & set(added_names()) and block.search.method not in known:  # other packages may add methods
        yield source.mistake(("mlcd", "search", "method"), str(UnknownName("method", block.search.method, known)))


class _Reading:
    """Validates a `mlcd:` block repeatedly, each time without the values that were wrong."""

    def __init__(self, source: Source, context: Mapping[str, Any]) -> None:
        self.source, self.context = source, context
        self.written: dict[str, Any] = deepcopy(source.written["mlcd"])
        self.found: list[Mistake] = []
        self._left_out: set[Trail] = {(word,) for word in source.lost}

    def block(self) -> Block | None:
        """The valid part of the block; None if nothing is left."""
        while True:
            model = block_for(map(str, self.written))
            try:
                return model.model_validate(self.written, context=self.context)
            except ValidationError as error:
                if not self._note(model, error):
                    return None

    def _note(self, model: type[Block], error: ValidationError) -> bool:
        """Note new mistakes; return whether anything could be removed."""
        # A missing key may be a mistyped one, so those are noted first.
        details = sorted(error.errors(), key=lambda each: each["type"] == "missing")
        known = frozenset(self._left_out)
        news = [_mistake(each, model, self.source) for each in details]
        for each, mistake in zip(details, news, strict=True):
            if not self._follows(each, mistake, known, news) and mistake not in self.found:
                self.found.append(mistake)
        left_out = [self._leave_out(each, mistake) for each, mistake in zip(details, news, strict=True)]
        return any(left_out)

    def _follows(self, detail: ErrorDetails, mistake: Mistake, known: frozenset[Trail], news: list[Mistake]) -> bool:
        """Whether an error only comes from a removed or mistyped key."""
        where = tuple(detail["loc"])
        if detail["type"] == "missing" and any(
            each.instead == where[-1] and each.key.rpartition(".")[0] == mistake.key.rpartition(".")[0] for each in news
        ):
            return True
        words = set(re.findall(r"\w+", mistake.message)) if detail["type"] == "value_error" else set()
        return any(each[: len(where)] == where or where[: len(each)] == each or each[-1] in words for each in known)

    def _leave_out(self, detail: ErrorDetails, mistake: Mistake) -> bool:
        """Remove what is wrong; for a missing key, the block that lacks it. False if that is impossible."""
        where = tuple(detail["loc"])
        if mistake.instead is not None:
            self._left_out.add((*where[:-1], mistake.instead))
        if detail["type"] == "missing" and where != ("work",):
            where = where[:-1]
        where = self._written_part(where)
        if where == () or (where == ("work",) and self.written.get("work") == STAND_IN):
            return False
        self._left_out.add(where)
        if where == ("work",):
            self.written["work"] = dict(STAND_IN)
            return True
        inside: Any = self.written
        for key in where[:-1]:
            inside = inside[key]
        del inside[where[-1]]
        return True

    def _written_part(self, where: Trail) -> Trail:
        """The part of this path that exists; the whole path if it is that of `work`."""
        inside: Any = self.written
        for i, key in enumerate(where):
            if not isinstance(inside, dict) or key not in inside:
                return where[:i] if where != ("work",) else where
            inside = inside[key]
        return where


def _mistake(detail: ErrorDetails, model: type[Block], source: Source) -> Mistake:
    inside = tuple(detail["loc"])
    where: Trail = ("mlcd", *inside)
    # The innermost key that the user wrote: `work: abc` is about `work`, not about the `samples` it stands for.
    written = [part for i, part in enumerate(where) if where[: i + 1] in source.marks and isinstance(part, str)]
    name = str(inside[-1]) if detail["type"] == "missing" else (written or ["mlcd"])[-1]
    key = where if detail["type"] == "missing" else None
    return source.mistake(where, _words(detail, name, model, inside), key)


def _words(detail: ErrorDetails, name: str, model: type[Block], inside: Trail) -> str:
    match detail["type"]:
        case "extra_forbidden":
            block = _block_with(name, model) if len(inside) == 1 else None
            place = f"it belongs in the `{block}:` block" if block is not None else None
            return f"unknown key '{name}': {place or nearest(name, _known_keys(model, inside[:-1]))}"
        case "missing" if len(inside) > 1:
            return f"`{name}` is missing from the `{inside[-2]}:` block"
        case "missing":
            return f"`{name}` is missing from the `mlcd:` block: say how much there is to do, as in `work: 90M`"
        case "value_error":
            reason = str(detail["ctx"]["error"])
            return f"{name} {reason}" if reason.startswith("'") else reason
        case "model_type" | "dict_type":
            return f"{name} '{detail['input']}': expected keys below it"
        case _:
            return f"{name} '{detail['input']}': {detail['msg'][0].lower()}{detail['msg'][1:]}"


def _known_keys(model: type[BaseModel], inside: Sequence[str | int]) -> list[str]:
    """The keys of the block with the mistake; for the `mlcd:` block also the names of all planners' blocks."""
    if not inside:
        blocks = [name for name in planner_names() if planner_named(name).block is not None]
        return [*(name for name in model.model_fields if name not in FORMER_NAMES), *blocks]
    for part in inside:
        below = _below(model, str(part))
        assert below is not None, "a mistake is in a block"
        model = below
    return list(model.model_fields)


def _block_with(name: str, model: type[BaseModel]) -> str | None:
    """The block in which a key belongs that was written one level too high, such as `nodes` next to `search`."""
    for part in model.model_fields:
        below = _below(model, part)
        if below is not None and name in below.model_fields:
            return part
    return None


def _below(model: type[BaseModel], part: str) -> type[BaseModel] | None:
    """The model of a key that is a block; None for other keys."""
    kinds = get_args(model.model_fields[part].annotation) or (model.model_fields[part].annotation,)
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
