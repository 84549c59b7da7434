"""`Part`: base class of the JSON documents that reports and the API return. Each field has a description."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Part(BaseModel):
    """A part of a JSON document. It can be validated from any object with the same attributes."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, json_schema_serialization_defaults_required=True)


def none_if_not_finite(value: Any) -> Any:
    """The value; None for infinity and NaN, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def named_if_not_finite(value: Any) -> Any:
    """The value; 'nan' or 'inf' as text, where users should see that a job has reported it."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


Finite = Annotated[float | None, BeforeValidator(none_if_not_finite)]
Reported = Annotated[float | str, BeforeValidator(named_if_not_finite)]


def part_fields(model: type[Part], source: object, **others: Any) -> dict[str, Any]:
    """The values for a part's fields: those in `others`, and the source's attributes of the same names."""
    names = [name for name in model.model_fields if name not in others and hasattr(source, name)]
    return {name: getattr(source, name) for name in names} | others
