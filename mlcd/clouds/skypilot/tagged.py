"""Machines that carry MLCD's tag, found by asking AWS itself: SkyPilot's database may not know them.

Every machine of a launch has the tag `mlcd`, with the name of its cluster, from the moment it is ordered.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from mlcd.core.errors import BackendError

TAG = "mlcd"
EVERYWHERE = "mlcd-*"
"""The clusters of every state folder."""
FIRST_REGION = "us-east-1"
"""It is always enabled, and knows the others."""
GONE = ("shutting-down", "terminated")
MINIMUM_S = 60.0
ENDED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
"""When a machine was ended, in the reason of its last change: 'User initiated (2026-11-18 08:50:19 GMT)'."""
SIDE_BY_SIDE = 8
"""Regions that are asked at the same time."""


@dataclass(frozen=True)
class Machine:
    """A machine of AWS. `state`: as EC2 names it; terminated machines are shown for about an hour.

    `launched_at`, `ended_at`: seconds since 1970. AWS does not always say when a machine has ended.
    """

    id: str
    region: str
    cluster: str
    state: str
    launched_at: float
    ended_at: float | None = None

    @property
    def is_gone(self) -> bool:
        """Whether it is billed no more."""
        return self.state in GONE

    def billed_s(self, now: float) -> float:
        """The seconds that AWS bills at the most: a minute at the least; its times are whole seconds."""
        return max(MINIMUM_S, (now if self.ended_at is None else self.ended_at + 1.0) - self.launched_at)

    def __str__(self) -> str:
        return f"{self.id} in {self.region} ({self.cluster})"


def connect(region: str) -> Any:
    """EC2 of a region."""
    try:
        import boto3
    except ImportError as error:
        raise BackendError("asking AWS for machines needs its client: pip install 'skypilot[aws]'") from error
    return boto3.client("ec2", region_name=region)


@dataclass(frozen=True)
class TaggedMachines:
    """The machines on AWS with MLCD's tag. `connect`: EC2 of a region."""

    connect: Callable[[str], Any] = connect

    def find(self, cluster: str = EVERYWHERE, regions: Sequence[str] = ()) -> list[Machine]:
        """Of clusters of this name, in these regions, or in all that the account uses. `cluster` may contain `*`."""
        with _one_line("asking AWS for machines"):
            asked = list(regions) or self._regions()
            with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
                found = threads.map(lambda region: self._in(region, cluster), asked)
                return [machine for machines in found for machine in machines]

    def terminate(self, machines: Sequence[Machine]) -> None:
        """End them, with their disks."""
        with _one_line("terminating machines on AWS"):
            for region, there in groupby(sorted(machines, key=attrgetter("region")), key=attrgetter("region")):
                self.connect(region).terminate_instances(InstanceIds=[machine.id for machine in there])

    def _regions(self) -> list[str]:
        return [str(region["RegionName"]) for region in self.connect(FIRST_REGION).describe_regions()["Regions"]]

    def _in(self, region: str, cluster: str) -> list[Machine]:
        pages = self.connect(region).get_paginator("describe_instances")
        found = []
        for page in pages.paginate(Filters=[{"Name": f"tag:{TAG}", "Values": [cluster]}]):
            for instance in (each for reservation in page["Reservations"] for each in reservation["Instances"]):
                tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
                times = instance["LaunchTime"].timestamp(), _ended_at(instance)
                found.append(Machine(instance["InstanceId"], region, tags[TAG], instance["State"]["Name"], *times))
        return found


def _ended_at(instance: Mapping[str, Any]) -> float | None:
    at = ENDED_AT.search(instance.get("StateTransitionReason") or "")
    return datetime.fromisoformat(f"{at[1]}+00:00").timestamp() if at else None


AWS = TaggedMachines()
"""With this machine's credentials."""


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Turn what boto3 raises into a `BackendError`. Its errors share no class: no credentials, no network, no right."""
    try:
        yield
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(f"{what}: {type(error).__name__}: {str(error).strip().splitlines()[0]}") from error
