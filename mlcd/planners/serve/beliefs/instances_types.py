"""Instance types, as models are served on whole machines: their family and how many vCPUs they have.

The vCPUs are told, or read from the name as clouds write it, or guessed from the price.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

USD_PER_VCPU_HOUR = 0.05
"""About what a vCPU costs with its memory, in any large cloud."""
EC2_SIZES = {"nano": 2.0, "micro": 2.0, "small": 2.0, "medium": 2.0, "large": 2.0, "xlarge": 4.0}


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A size of a family of machines. `accelerated`: whether it is told to have a GPU or the like."""

    name: str
    family: str
    vcpus: float
    accelerated: bool = False


def instance_types(usd: Mapping[str, float], resources: Mapping[str, Mapping[str, float]]) -> tuple[InstanceType, ...]:
    """Each type, by name with its dollars an hour. `resources`: what is told, such as 'vcpus' and 'accelerators'."""
    found = []
    for name, usd_per_hour in usd.items():
        family, read = _parted(name)
        told = resources.get(name, {})
        vcpus = told.get("vcpus") or read or usd_per_hour / USD_PER_VCPU_HOUR
        found.append(InstanceType(name, family, vcpus, told.get("accelerators", 0.0) > 0))
    return tuple(found)


def _parted(name: str) -> tuple[str, float | None]:
    """Family and vCPUs: 'c5.4xlarge' is 16 of c5, 'n2-standard-8' is 8 of n2-standard."""
    if ec2 := re.fullmatch(r"([\w-]+)\.(?:(\d+)xlarge|(\w+))", name):
        return ec2[1], 4.0 * int(ec2[2]) if ec2[2] else EC2_SIZES.get(ec2[3])
    if counted := re.fullmatch(r"(.+)-(\d+)", name):
        return counted[1], float(counted[2])
    return name, None
