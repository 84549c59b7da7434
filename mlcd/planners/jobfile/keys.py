"""What the blocks of a job file are made of: how a value is read, how much there is to do, a planner's own block."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from mlcd.core.job import Target
from mlcd.core.payload import Ask
from mlcd.core.units import parse_count, parse_duration, parse_gb, parse_one_of, parse_usd

T = TypeVar("T")


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
    return BeforeValidator(partial(parse_one_of, known=tuple(choices)))


def listed(written: Any) -> list[Any]:
    """One value, or a list of them, as a list."""
    return written if isinstance(written, list) else [written]


Usd = Annotated[float | None, read(parse_usd)]
Seconds = Annotated[float | None, read(parse_duration)]
Count = Annotated[float | None, read(parse_count)]
Whole = Annotated[float | None, read(whole)]
Gigabytes = Annotated[float | None, read(parse_gb)]


class Keys(BaseModel):
    """A block of keys, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Work(Keys):
    """How much there is to do."""

    samples: Count = None
    dataset: Count = None
    epochs: Count = None

    @model_validator(mode="before")
    @classmethod
    def _a_number_is_samples(cls, written: Any) -> Any:
        return written if isinstance(written, dict) else {"samples": written}

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Work:
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
        """In samples."""
        return self.samples if self.samples is not None else (self.dataset or 0.0) * (self.epochs or 0.0)


class PlannerBlock(Keys):
    """A planner's block in `mlcd:`, under the planner's name: its keys, with their units and defaults."""

    target: Target | None = None

    def check(self, work: Work) -> None:
        """`ValueError` for what does not go together with the rest of the file."""

    def ask(self, work: Work) -> Ask:
        """As the rest of MLCD knows it."""
        raise NotImplementedError
