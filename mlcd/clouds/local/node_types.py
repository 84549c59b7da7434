"""Node types of the local backend: a small YAML file of CPUs, memory, link and a made-up price.

probe: 20s              the longest time of a probe on one node
probe_extra: 3s         added for every three further nodes
startup: 40s            timeout of the first report of progress
nodes: 1..8
types:
  small: {cpus: 0.2, memory: 2GB, link: 100Mbit, usd_per_hour: 0.20}
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field

from mlcd.clouds.node_types import FileKeys, TypeKeys, read_file, unit
from mlcd.core.configuration import Offer, ProbeTime
from mlcd.core.units import parse_duration, parse_range

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
        """The type as an offer."""
        return Offer(
            self.name, self.usd_per_hour, self.cpus, self.memory_gb, network_gbps=self.link_mbit / 1_000, cloud=CLOUD
        )


@dataclass(frozen=True)
class NodeTypes:
    """The content of the file: the types, and the time limits."""

    types: tuple[NodeType, ...]
    nodes: tuple[int, int]
    probe_time: ProbeTime
    startup_s: float

    def named(self, name: str) -> NodeType:
        """The type of that name."""
        return next(each for each in self.types if each.name == name)


def load_node_types(path: Path | None = None) -> NodeTypes:
    """The types of a file, or MLCD's own."""
    source = path if path is not None else files("mlcd.clouds.local").joinpath("nodes.yaml")
    return read_file(source, _File, CLOUD).node_types()


class _File(FileKeys):
    types: Annotated[dict[str, TypeKeys], Field(min_length=1)]
    nodes: Annotated[tuple[int, int], unit(parse_range)] = (1, 8)
    probe: Annotated[float, unit(parse_duration)] = 20.0
    probe_extra: Annotated[float, unit(parse_duration)] = 3.0
    startup: Annotated[float, unit(parse_duration)] = 40.0

    def node_types(self) -> NodeTypes:
        types = tuple(
            NodeType(name, each.cpus, each.memory, each.link, each.usd_per_hour) for name, each in self.types.items()
        )
        return NodeTypes(types, self.nodes, ProbeTime(self.probe, self.probe_extra), self.startup)
