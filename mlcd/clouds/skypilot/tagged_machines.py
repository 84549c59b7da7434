"""Finds and terminates machines with MLCD's tag by asking AWS directly: SkyPilot's database may not know them.

From the moment it is ordered, every machine of a launch has the tag `mlcd` with the name of its cluster.
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
"""A region that is always enabled; it lists the others."""
GONE = ("shutting-down", "terminated")
MINIMUM_S = 60.0
ENDED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
"""When a machine ended, from the reason of its last change: 'User initiated (2026-11-18 08:50:19 GMT)'."""
PARALLEL_REGIONS = 8
"""Regions that are asked at the same time."""


@dataclass(frozen=True)
class Machine:
    """A machine of AWS. `state`: as EC2 names it; EC2 lists terminated machines for about an hour.

    `launched_at`, `ended_at`: Unix time. AWS does not always say when a machine ended.
    """

    id: str
    region: str
    cluster: str
    state: str
    launched_at: float
    ended_at: float | None = None

    @property
    def is_gone(self) -> bool:
        """Whether it is no longer billed."""
        return self.state in GONE

    def billed_s(self, now: float) -> float:
        """Upper bound of the seconds that AWS bills: at least a minute; plus one, as its times are whole seconds."""
        return max(MINIMUM_S, (now if self.ended_at is None else self.ended_at + 1.0) - self.launched_at)

    def __str__(self) -> str:
        return f"{self.id} in {self.region} ({self.cluster})"


def connect(region: str) -> Any:
    """An EC2 client for a region."""
    try:
        import boto3
    except ImportError as error:
        raise BackendError("asking AWS for machines needs its client: pip install 'skypilot[aws]'") from error
    return boto3.client("ec2", region_name=region)


@dataclass(frozen=True)
class TaggedMachines:
    """The machines on AWS with MLCD's tag. `connect`: makes an EC2 client for a region."""

    connect: Callable[[str], Any] = connect

    def find(self, cluster: str = EVERYWHERE, regions: Sequence[str] = ()) -> list[Machine]:
        """The machines of a cluster, whose name may contain `*`, in these regions, or in all enabled ones."""
        with _one_line("asking AWS for machines"):
            searched = list(regions) or self._regions()
            with ThreadPoolExecutor(PARALLEL_REGIONS) as threads:
                by_region = threads.map(lambda region: self._in(region, cluster), searched)
                return [machine for machines in by_region for machine in machines]

    def terminate(self, machines: Sequence[Machine]) -> None:
        """Terminate machines, with their disks."""
        with _one_line("terminating machines on AWS"):
            for region, in_region in groupby(sorted(machines, key=attrgetter("region")), key=attrgetter("region")):
                self.connect(region).terminate_instances(InstanceIds=[machine.id for machine in in_region])

    def _regions(self) -> list[str]:
        return [str(region["RegionName"]) for region in self.connect(FIRST_REGION).describe_regions()["Regions"]]

    def _in(self, region: str, cluster: str) -> list[Machine]:
        pages = self.connect(region).get_paginator("describe_instances")
        machines = []
        for page in pages.paginate(Filters=[{"Name": f"tag:{TAG}", "Values": [cluster]}]):
            for instance in (each for reservation in page["Reservations"] for each in reservation["Instances"]):
                tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
                times = instance["LaunchTime"].timestamp(), _ended_at(instance)
                machines.append(Machine(instance["InstanceId"], region, tags[TAG], instance["State"]["Name"], *times))
        return machines


def _ended_at(instance: Mapping[str, Any]) -> float | None:
    at = ENDED_AT.search(instance.get("StateTransitionReason") or "")
    return datetime.fromisoformat(f"{at[1]}+00:00").timestamp() if at else None


AWS = TaggedMachines()
"""AWS with this machine's credentials."""


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Turn any error of boto3 into a `BackendError`: its errors have no common class."""
    try:
        yield
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(f"{what}: {type(error).__name__}: {str(error).strip().splitlines()[0]}") from error
