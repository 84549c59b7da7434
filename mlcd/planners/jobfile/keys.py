"""How a value of a job file is read: money, durations, counts, words out of a list."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from mlcd.core.units import parse_count, parse_duration, parse_gb, parse_usd

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is none of those known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.55)
    return f"did you mean '{near[0]}'?" if near else "known: " + ", ".join(names)


def read(parse: Callable[[Any], T]) -> BeforeValidator:
    """A unit's parser, as pydantic wants it: nothing, or the word none, stays None."""
    return BeforeValidator(lambda written: None if written in (None, "none") else parse(written))


def whole(written: Any) -> float:
    """A count of things that cannot be cut: 256, 1k."""
    value = parse_count(written)
    if value < 1 or value != int(value):
        raise ValueError(f"'{written}': expected a whole number, such as 256")
    return value


def one_of(choices: type[StrEnum]) -> BeforeValidator:
    """One of these words."""

    def parse(written: Any) -> Any:
        known = [str(choice) for choice in choices]
        if str(written) not in known:
            raise ValueError(f"'{written}': {nearest(str(written), known)}")
        return written

    return BeforeValidator(parse)


Usd = Annotated[float | None, read(parse_usd)]
Seconds = Annotated[float | None, read(parse_duration)]
Count = Annotated[float | None, read(parse_count)]
Whole = Annotated[float | None, read(whole)]
Gigabytes = Annotated[float | None, read(parse_gb)]


class Keys(BaseModel):
    """A block of keys, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)
