"""Terminates orphaned machines on AWS: those whose run is driven by no process.

They are found by their tag, because SkyPilot's server and its database may be lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlcd.clouds.launches import Launches
from mlcd.clouds.skypilot.tagged_machines import Machine, TaggedMachines
from mlcd.clouds.skypilot.task import cluster_of, owner_of


@dataclass(frozen=True)
class Swept:
    """A machine that was found, and what was done about it."""

    machine: Machine
    outcome: str


def sweep(home: Path, driven: set[str], machines: TaggedMachines) -> Iterator[Swept]:
    """Terminate the machines of this state folder whose runs are not in `driven`; report those of other folders."""
    launches, owner = Launches(home / "launches"), owner_of(home)
    labels = {cluster_of(launches, folder, owner): folder.name for folder in launches.folders()}
    for machine in (each for each in machines.find() if not each.is_gone):
        label = labels.get(machine.cluster, "")
        if not machine.cluster.startswith(f"mlcd-{owner}-"):
            by_hand = f"aws ec2 terminate-instances --region {machine.region} --instance-ids {machine.id}"
            yield Swept(machine, f"left alone: it belongs to another state folder. If nobody needs it: {by_hand}")
        elif label.rpartition("-")[0] in driven or launches.driver(label) is not None:
            yield Swept(machine, "left alone: its run is in progress")
        else:
            machines.terminate([machine])
            yield Swept(machine, "terminated")
