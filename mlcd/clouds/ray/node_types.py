"""Node types of the Ray backend: a YAML file with the custom resource that marks each type, and its price.

probe: 10m              the longest time of a probe on one node
probe_extra: 1m         added for every three further nodes
startup: 5m             timeout of the first report of progress
nodes: 1..8             by default all nodes of the cluster
checkpoints: /shared    a folder that all nodes share, for jobs that save their work
types:
  small: {cpus: 4, memory: 16GB, link: 10Gbit, usd_per_hour: 0.20}
  gpu: {cpus: 8, memory: 64GB, link: 10Gbit, usd_per_hour: 3.10, accelerators: V100:1, tflops: 15.7, resource: v100}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mlcd.clouds.node_types import FileKeys, TypeKeys, read_file, unit
from mlcd.core.configuration import Offer, ProbeTime
from mlcd.core.units import parse_duration, parse_range

CLOUD = "ray"
MANY = 1_000_000


@dataclass(frozen=True)
class NodeType:
    """A kind of node: one unit of its resource is one whole node."""

    offer: Offer
    resource: str

    @property
    def bundle(self) -> dict[str, float]:
        """What a job reserves of a node: its custom resource, all CPUs and all accelerators, to have it alone."""
        gpus = {"GPU": float(self.offer.accelerators)} if self.offer.accelerators else {}
        return {self.resource: 1.0, "CPU": self.offer.vcpus, **gpus}


@dataclass(frozen=True)
class NodeTypes:
    """The content of the file: the types, and the time limits."""

    types: tuple[NodeType, ...]
    nodes: tuple[int, int]
    probe_time: ProbeTime
    startup_s: float
    checkpoints: str = ""

    def named(self, name: str) -> NodeType:
        """The type of that name."""
        return next(each for each in self.types if each.offer.instance_type == name)


def load_node_types(path: Path) -> NodeTypes:
    """The types of a file."""
    return read_file(path, _File, CLOUD).node_types()


def _accelerators(written: Any) -> tuple[str, int]:
    name, _, count = str(written).partition(":")
    if not name or not (count or "1").isdecimal() or count == "0":
        raise ValueError(f"'{written}': expected a name and a count, such as V100:4")
    return name, int(count or 1)


class _Type(TypeKeys):
    resource: Annotated[str, Field(min_length=1)] | None = None
    accelerators: Annotated[tuple[str, int], unit(_accelerators)] = ("", 0)
    tflops: Annotated[float, Field(ge=0)] = 0.0

    def node_type(self, name: str) -> NodeType:
        accelerator, count = self.accelerators
        offer = Offer(
            name,
            self.usd_per_hour,
            self.cpus,
            self.memory,
            accelerator,
            count,
            self.tflops,
            network_gbps=self.link / 1_000,
            cloud=CLOUD,
        )
        return NodeType(offer, self.resource or name)


class _File(FileKeys):
    types: Annotated[dict[str, _Type], Field(min_length=1)]
    nodes: Annotated[tuple[int, int], unit(parse_range)] = (1, MANY)
    probe: Annotated[float, unit(parse_duration)] = 600.0
    probe_extra: Annotated[float, unit(parse_duration)] = 60.0
    startup: Annotated[float, unit(parse_duration)] = 300.0
    checkpoints: str = ""

    def node_types(self) -> NodeTypes:
        types = tuple(each.node_type(name) for name, each in self.types.items())
        probe_time = ProbeTime(self.probe, self.probe_extra)
        return NodeTypes(types, self.nodes, probe_time, self.startup, self.checkpoints)
