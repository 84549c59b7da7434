"""Building blocks of job-file models: parsers of values, the `work` block, and the base of planners' blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic_core import InitErrorDetails

from mlcd.core.job import Target
from mlcd.core.payload import Ask
from mlcd.core.units import parse_count, parse_duration, parse_gb, parse_one_of, parse_usd

T = TypeVar("T")


def read(parse: Callable[[Any], T]) -> BeforeValidator:
    """A parser as a pydantic validator; a missing value and 'none' become None."""
    return BeforeValidator(lambda written: None if written in (None, "none") else parse(written))


def whole(written: Any) -> float:
    """A whole number: 256, 1k."""
    value = parse_count(written, such_as="256")
    if value < 1 or value != int(value):
        raise ValueError(f"'{written}': expected a whole number, such as 256")
    return value


def one_of(choices: type[StrEnum]) -> BeforeValidator:
    """One of these words."""
    return BeforeValidator(partial(parse_one_of, known=tuple(choices)))


def mistake_at(where: tuple[str | int, ...], what: str) -> ValidationError:
    """An error that involves several keys, reported at the key `where`."""
    details = InitErrorDetails(type="value_error", loc=where, input=None, ctx={"error": ValueError(what)})
    return ValidationError.from_exception_data("mistake", [details])


def listed(written: Any) -> list[Any]:
    """One value, or a list of them, as a list."""
    return written if isinstance(written, list) else [written]


Usd = Annotated[float | None, read(parse_usd), Field(examples=["$100"])]
Seconds = Annotated[float | None, read(parse_duration), Field(examples=["6h"])]
Count = Annotated[float | None, read(parse_count)]
Whole = Annotated[float | None, read(whole)]
Size = Annotated[int | None, read(lambda written: int(whole(written)))]
Gigabytes = Annotated[float | None, read(parse_gb), Field(examples=["16GB"])]
Names = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
"""JSON Schema of a key that accepts one name or a list of names."""


def such_as(counts: str) -> WithJsonSchema:
    """JSON Schema of a range of counts, with an example."""
    return WithJsonSchema({"type": ["integer", "string"], "examples": [counts]})


def or_alone(alone: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], None]:
    """JSON Schema of a block that may also be a single value. `alone`: makes that value's schema from the block's."""

    def change(schema: dict[str, Any]) -> None:
        block = dict(schema)
        schema.clear()
        schema |= {"description": block.pop("description", ""), "anyOf": [alone(block), block]}

    return change


class Keys(BaseModel):
    """A block of keys, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


WAYS = "`samples: 90M`, or `dataset: 1.28M` and `epochs: 70`, or `tokens: 300M` with `sequence: 4096`"
"""The ways to write `work`, for messages."""


class Work(Keys):
    """How much there is to do."""

    model_config = ConfigDict(json_schema_extra=or_alone(lambda block: {"type": ["number", "string"]}))

    samples: Count = None
    """Samples that the job trains on, in total, such as 90M."""
    dataset: Count = None
    """Samples in the data set; with `epochs`."""
    epochs: Count = None
    """Passes over the data set; may be a fraction."""
    tokens: Count = None
    """Tokens in total; a sample has `sequence` of them."""

    @model_validator(mode="before")
    @classmethod
    def _a_number_is_samples(cls, written: Any) -> Any:
        return written if isinstance(written, dict) else {"samples": written}

    @model_validator(mode="after")
    def _exactly_one_way(self) -> Work:
        both = self.dataset is not None and self.epochs is not None
        ways = (self.samples is not None, self.dataset is not None or self.epochs is not None, self.tokens is not None)
        if sum(ways) != 1 or ways[1] != both:
            raise ValueError(f"work: say either {WAYS}")
        if not math.isfinite((self.dataset or 0.0) * (self.epochs or 0.0)):
            raise ValueError("work: `dataset` times `epochs` is too large")
        return self

    def total(self, sequence: int | None = None) -> float:
        """The work in samples, rounded up. `sequence`: tokens in a sample."""
        if self.tokens is not None:
            return float(math.ceil(self.tokens / (sequence or 1)))
        return self.samples if self.samples is not None else (self.dataset or 0.0) * (self.epochs or 0.0)


class PlannerBlock(Keys):
    """A planner's block in `mlcd:`, under the planner's name: its keys, with their units and defaults."""

    target: Target | None = None
    """The metric that ends the job, such as accuracy >= 75 %."""

    def check(self, work: Work) -> None:
        """`ValueError` if the block contradicts the rest of the file."""

    def ask(self, work: Work) -> Ask:
        """The block as the planner's part of a job."""
        raise NotImplementedError
