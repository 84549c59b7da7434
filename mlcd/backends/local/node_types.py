"""Node types of the local backend: a small YAML file of CPUs, memory, link and a made-up price.

probe: 20s              the longest that a probe on one node takes
probe_extra: 3s         more, for every three further nodes
startup: 40s            a job that has reported nothing by then is given up
nodes: 1..8
types:
  small: {cpus: 0.2, memory: 2GB, link: 100Mbit, usd_per_hour: 0.20}
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mlcd.configuration import Offer, ProbeTime
from mlcd.errors import UserError
from mlcd.units import parse_duration, parse_gb, parse_range, parse_usd

CLOUD = "local"


@dataclass(frozen=True)
class NodeType:
    """What a node of this type may use."""

    name: str
    cpus: float
    memory_gb: float
    link_mbit: float
    usd_per_hour: float

    @property
    def offer(self) -> Offer:
        """As something to rent."""
        return Offer(
            self.name, self.usd_per_hour, self.cpus, self.memory_gb, network_gbps=self.link_mbit / 1_000, cloud=CLOUD
        )


@dataclass(frozen=True)
class NodeTypes:
    """The file: the types, and how long things may take."""

    types: tuple[NodeType, ...]
    nodes: tuple[int, int]
    probe_time: ProbeTime
    startup_s: float

    def named(self, name: str) -> NodeType:
        """The type of that name."""
        return next(each for each in self.types if each.name == name)


def load_node_types(path: Path | None = None) -> NodeTypes:
    """The types of a file, or those that come with MLCD."""
    source = path if path is not None else files("mlcd.backends.local").joinpath("nodes.yaml")
    try:
        document = yaml.safe_load(source.read_text(encoding="utf-8"))
        return _File.model_validate(document).node_types()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}; give a file of node types, as local:nodes.yaml") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from error


def _unit(parse: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(parse)


def _mbit(written: Any) -> float:
    told = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(k|m|g)bit", str(written).strip().lower())
    if told is None or float(told[1]) <= 0:
        raise ValueError(f"'{written}': expected a rate, such as 100Mbit or 1Gbit")
    return float(told[1]) * {"k": 1e-3, "m": 1.0, "g": 1e3}[told[2]]


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Type(_Keys):
    cpus: Annotated[float, Field(gt=0, le=1024)]
    memory: Annotated[float, _unit(parse_gb)]
    link: Annotated[float, _unit(_mbit)]
    usd_per_hour: Annotated[float, _unit(parse_usd)]


class _File(_Keys):
    types: Annotated[dict[str, _Type], Field(min_length=1)]
    nodes: Annotated[tuple[int, int], _unit(parse_range)] = (1, 8)
    probe: Annotated[float, _unit(parse_duration)] = 20.0
    probe_extra: Annotated[float, _unit(parse_duration)] = 3.0
    startup: Annotated[float, _unit(parse_duration)] = 40.0

    def node_types(self) -> NodeTypes:
        types = tuple(
            NodeType(name, each.cpus, each.memory, each.link, each.usd_per_hour) for name, each in self.types.items()
        )
        return NodeTypes(types, self.nodes, ProbeTime(self.probe, self.probe_extra), self.startup)
