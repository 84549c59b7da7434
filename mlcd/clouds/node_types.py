"""Files of node types: what the local and the Ray backend have in common, and how a file is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mlcd.core.errors import UserError
from mlcd.core.units import parse_duration, parse_gb, parse_range, parse_usd

F = TypeVar("F", bound=BaseModel)


def unit(parse: Callable[[Any], Any]) -> BeforeValidator:
    """A value in the notation of a parser, such as '100Mbit'."""
    return BeforeValidator(parse)


def parse_mbit(written: Any) -> float:
    """'100Mbit' or '1Gbit' to megabits a second."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(k|m|g)bit", str(written).strip().lower())
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"'{written}': expected a rate, such as 100Mbit or 1Gbit")
    return float(match[1]) * {"k": 1e-3, "m": 1.0, "g": 1e3}[match[2]]


class Keys(BaseModel):
    """The allowed keys of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TypeKeys(Keys):
    """The keys of a node type."""

    cpus: Annotated[float, Field(gt=0, le=1024)]
    memory: Annotated[float, unit(parse_gb)]
    link: Annotated[float, unit(parse_mbit)]
    usd_per_hour: Annotated[float, unit(parse_usd)]


class FileKeys(Keys):
    """The keys of a file beside its types."""

    nodes: Annotated[tuple[int, int], unit(parse_range)]
    probe: Annotated[float, unit(parse_duration)]
    probe_extra: Annotated[float, unit(parse_duration)]
    startup: Annotated[float, unit(parse_duration)]


def read_file(source: Path | Traversable, keys: type[F], backend: str) -> F:
    """Read a file of node types; a mistake in it becomes a `UserError` of one line."""
    try:
        return keys.model_validate(yaml.safe_load(source.read_text(encoding="utf-8")))
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{source}: {reason}; give a file of node types, as {backend}:nodes.yaml") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{source}: not YAML: {str(error).splitlines()[0]}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{source}: {where}: {first['msg'].removeprefix('Value error, ')}") from error
