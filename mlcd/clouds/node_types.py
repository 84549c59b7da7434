"""Reads the YAML file of node types of the local and the Ray backend: CPUs, memory, network link, GPUs and price.

probe: 20s              maximum time of a probe on one node
probe_extra: 3s         added for every three further nodes
startup: 40s            timeout of the first report of progress
nodes: 1..8             on Ray, by default all nodes of the cluster
types:
  small: {cpus: 0.2, memory: 2GB, link: 100Mbit, usd_per_hour: 0.20}
  gpu: {cpus: 8, memory: 64GB, link: 10Gbit, usd_per_hour: 3.10, accelerators: V100:1, tflops: 15.7}

`accelerators: 2` means two GPUs of any kind. `drill`: simulated preemptions, see `drill.py`.

Only on Ray:
checkpoints: /shared    a folder that all nodes share, for jobs that save their work
types:
  gpu: {..., resource: v100}
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mlcd.clouds.drill import NO_DRILL, Drill
from mlcd.core.configuration import Offer, ProbeTime
from mlcd.core.errors import UserError
from mlcd.core.units import parse_duration, parse_gb, parse_range, parse_usd

MANY = 1_000_000
ANY_GPU = "GPU"
"""The name of an accelerator that may be of any kind."""


@dataclass(frozen=True)
class NodeTypes:
    """The content of a file. `resources`: for each type, the custom resource that marks it on a Ray cluster."""

    offers: tuple[Offer, ...]
    nodes: tuple[int, int]
    probe_time: ProbeTime
    startup_s: float
    resources: Mapping[str, str] = field(default_factory=dict)
    checkpoints: str = ""
    drill: Drill = NO_DRILL

    def bundle(self, offer: Offer) -> dict[str, float]:
        """The resources to reserve for exclusive use of a Ray node: its custom resource, all CPUs, all GPUs."""
        gpus = {"GPU": float(offer.accelerators)} if offer.accelerators else {}
        return {self.resources[offer.instance_type]: 1.0, "CPU": offer.vcpus, **gpus}


def load_local_types(path: Path | None = None) -> NodeTypes:
    """The types of a file for `--on local`; without a file, the default types in `local/nodes.yaml`."""
    source = path if path is not None else files("mlcd.clouds.local").joinpath("nodes.yaml")
    return _read(source, _LocalFile, "local")


def load_ray_types(path: Path) -> NodeTypes:
    """The types of a file for `--on ray`."""
    return _read(path, _RayFile, "ray")


def _mbit(value: Any) -> float:
    """'100Mbit' or '1Gbit' to megabits a second."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(k|m|g)bit", str(value).strip().lower())
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"'{value}': expected a rate, such as 100Mbit or 1Gbit")
    return float(match[1]) * {"k": 1e-3, "m": 1.0, "g": 1e3}[match[2]]


def _accelerators(value: Any) -> tuple[str, int]:
    """'V100:4', 'V100' or 4 to a name and a count."""
    text = str(value).strip()
    name, _, count = f"{ANY_GPU}:{text}".partition(":") if text.isdecimal() else text.partition(":")
    if not name or not (count or "1").isdecimal() or int(count or 1) == 0 or isinstance(value, bool):
        raise ValueError(f"'{value}': expected a name and a count, such as V100:4, or a count")
    return name, int(count or 1)


Duration = Annotated[float, BeforeValidator(parse_duration)]
Nodes = Annotated[tuple[int, int], BeforeValidator(parse_range)]


class _Type(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cpus: Annotated[float, Field(gt=0, le=1024)]
    memory: Annotated[float, BeforeValidator(parse_gb)]
    link: Annotated[float, BeforeValidator(_mbit)]
    usd_per_hour: Annotated[float, BeforeValidator(parse_usd)]
    accelerators: Annotated[tuple[str, int], BeforeValidator(_accelerators)] = ("", 0)
    tflops: Annotated[float, Field(ge=0)] = 0.0

    def offer(self, name: str, cloud: str) -> Offer:
        accelerator, count = self.accelerators
        return Offer(
            name,
            self.usd_per_hour,
            self.cpus,
            self.memory,
            accelerator=accelerator,
            accelerators=count,
            tflops_per_accelerator=self.tflops,
            network_gbps=self.link / 1_000,
            cloud=cloud,
        )


class _RayType(_Type):
    resource: Annotated[str, Field(min_length=1)] | None = None


class _Drill(BaseModel):
    model_config = ConfigDict(extra="forbid")

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    up: Duration = NO_DRILL.up_s
    down: Duration = NO_DRILL.down_s
    spot: Annotated[float, Field(gt=0, lt=1)] = NO_DRILL.price
    seed: int = NO_DRILL.seed


class _LocalFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    types: Annotated[Mapping[str, _Type], Field(min_length=1)]
    nodes: Nodes = (1, 8)
    probe: Duration = 20.0
    probe_extra: Duration = 3.0
    startup: Duration = 40.0
    drill: _Drill | None = None

    def node_types(self, cloud: str) -> NodeTypes:
        offers = tuple(each.offer(name, cloud) for name, each in self.types.items())
        block = self.drill
        drill = Drill(block.zones, block.up, block.down, block.spot, block.seed) if block is not None else NO_DRILL
        probe_time = ProbeTime(self.probe, self.probe_extra)
        return NodeTypes(offers, self.nodes, probe_time, self.startup, drill=drill)


class _RayFile(_LocalFile):
    types: Annotated[Mapping[str, _RayType], Field(min_length=1)]
    nodes: Nodes = (1, MANY)
    probe: Duration = 600.0
    probe_extra: Duration = 60.0
    startup: Duration = 300.0
    checkpoints: str = ""

    def node_types(self, cloud: str) -> NodeTypes:
        resources = {name: each.resource or name for name, each in self.types.items()}
        return replace(super().node_types(cloud), resources=resources, checkpoints=self.checkpoints)


def _read(source: Path | Traversable, keys: type[_LocalFile], backend: str) -> NodeTypes:
    """Read a file; a mistake in it becomes a `UserError` of one line."""
    try:
        return keys.model_validate(yaml.safe_load(source.read_text(encoding="utf-8"))).node_types(backend)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{source}: {reason}; give a file of node types, as {backend}:nodes.yaml") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{source}: not YAML: {str(error).splitlines()[0]}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{source}: {where}: {first['msg'].removeprefix('Value error, ')}") from error
