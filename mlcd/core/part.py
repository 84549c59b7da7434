"""What every part of a run's document is: a model whose properties all have a description."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Part(BaseModel):
    """A part of a document. It can be read from an object that has the same attributes."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, json_schema_serialization_defaults_required=True)


def finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def written(value: Any) -> Any:
    """The same, where a job has reported such a number, and people should see that it has: its name."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


Finite = Annotated[float | None, BeforeValidator(finite)]
Reported = Annotated[float | str, BeforeValidator(written)]


def taken(model: type[Part], source: object, **others: Any) -> dict[str, Any]:
    """The fields of a part: these, and whatever else the source has under their names."""
    names = [name for name in model.model_fields if name not in others and hasattr(source, name)]
    return {name: getattr(source, name) for name in names} | others
