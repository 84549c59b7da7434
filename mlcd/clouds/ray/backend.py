"""The Ray backend: real jobs on the nodes of a Ray cluster that is there already."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path

import mlcd.clouds.local.teardown as teardown
import mlcd.clouds.ray.cluster as cluster
from mlcd.clouds.launches import Launches, before_ordering
from mlcd.clouds.live import LiveJob, Patience
from mlcd.clouds.local.watchman import Watchman
from mlcd.clouds.platforms import leave_file
from mlcd.clouds.ray.node_types import NodeTypes, load_node_types
from mlcd.clouds.ray.nodes import Nodes
from mlcd.core.backend import Events, Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.configuration import Choice
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome

HANGS_AFTER_S = 300.0
"""Without a report, once there was one."""
TEARDOWN_S = teardown.GRACE_S + 2.0
"""Kept at the end of a lifetime to be gone in time."""


@dataclass(frozen=True)
class Ray:
    """Runs jobs on nodes of a Ray cluster. `home`: where launches are kept."""

    node_types: NodeTypes
    home: Path
    clock: Clock
    hangs_after_s: float = HANGS_AFTER_S

    provenance = Provenance.LIVE

    @property
    def launches(self) -> Launches:
        """What was ever launched from here."""
        return Launches(self.home / "launches")

    def run(self, job: Job, launch: Launch) -> Events:
        """Take the nodes, run the job on them, give them back."""
        started_s = self.clock.elapsed_s()
        environment = self._environment(job, launch)
        with before_ordering():
            cluster.connect(_working_folder(job))
        folder = self.launches.open(launch, lifetime_s=launch.lifetime_s)
        with ExitStack() as stack:
            stack.enter_context(Watchman(folder, launch.lifetime_s))
            stack.callback(teardown.tear_down, folder, 0.0)  # notes the end, once nothing is left
            stack.callback(cluster.tear_down, launch.label, teardown.GRACE_S)
            nodes = self._bring_up(launch, folder, started_s)
            if nodes is None:
                free = f"the cluster has no {launch.configuration} free"
                yield Ended(self.clock.elapsed_s() - started_s, Outcome.LAUNCH_FAILED, free)
                return
            stack.callback(nodes.close)
            patience = Patience(self.node_types.startup_s, self.hangs_after_s, TEARDOWN_S)
            live = LiveJob(job, launch, nodes, self.clock, patience, started_s, environment, nodes.first_ports)
            yield from live.events()

    def reclaim(self, label: str) -> float | None:
        """Take away what a crash left of a launch. It was up until now if anything was left, else until MLCD ended."""
        folder = self.launches.find(label)
        if folder is None:
            return None
        if cluster.tear_down(label, grace_s=0.0):
            (folder / "ended").unlink(missing_ok=True)
        lifetime_s = self.launches.order(folder).get("lifetime_s")
        return min(teardown.tear_down(folder, 0.0), inf if lifetime_s is None else float(lifetime_s))

    def saved(self, label: str) -> float:
        """What a launch has saved whose end nobody saw."""
        return self.launches.saved(label)

    def leftovers(self) -> set[str]:
        """Launches of ours of which anything is left in the cluster."""
        return {label for label in cluster.labels() if self.launches.find(label) is not None}

    def _bring_up(self, launch: Launch, folder: Path, started_s: float) -> Nodes | None:
        most_s = min(self.node_types.startup_s, inf if launch.lifetime_s is None else launch.lifetime_s - TEARDOWN_S)
        node_type = self.node_types.named(launch.configuration.offer.instance_type)
        actors = cluster.bring_up(launch.label, node_type, launch.configuration.nodes, most_s - self._up_s(started_s))
        if actors is None:
            return None
        nodes = Nodes(actors, folder)
        lifetime_s = launch.lifetime_s
        left_s = None if lifetime_s is None else lifetime_s - self._up_s(started_s)
        return nodes if nodes.meet(launch.label, left_s, most_s - self._up_s(started_s)) else None

    def _up_s(self, started_s: float) -> float:
        return self.clock.elapsed_s() - started_s

    def _environment(self, job: Job, launch: Launch) -> dict[str, str]:
        """What a process gets beside the framework's variables."""
        found = {"OMP_NUM_THREADS": str(max(1, round(launch.configuration.offer.vcpus)))}
        if job.checkpoints:
            kept = Path(self.node_types.checkpoints) / launch.label.rpartition("-")[0]
            found["MLCD_CHECKPOINT_DIR"] = str(kept)
            found["MLCD_LEAVE"] = leave_file(str(kept), launch.label)
        return found


def available(job: Job, types: Path | None) -> tuple[NodeTypes, tuple[Choice, ...]]:
    """The types of a file, and how many nodes of each the cluster has."""
    cluster.connect(_working_folder(job))
    here = ", ".join(cluster.resources()) or "none: start its nodes with `ray start --resources '{\"small\": 1}'`"
    if types is None:
        raise UserError(f"prices are missing: --on ray:FILE, with a type for each of the cluster's resources ({here})")
    node_types = load_node_types(types)
    if job.checkpoints and not node_types.checkpoints:
        raise UserError(f"{types}: the job saves checkpoints; add `checkpoints:`, a folder that all nodes share")
    counts, (fewest, most) = cluster.counts(node_types.types), node_types.nodes
    choices = tuple(
        Choice(each.offer, tuple(range(fewest, min(most, counts[each.offer.instance_type]) + 1)))
        for each in node_types.types
    )
    if not any(choice.nodes for choice in choices):
        raise UserError(f"{types}: the cluster has no node of these types; its resources: {here}")
    return node_types, tuple(choice for choice in choices if choice.nodes)


def _working_folder(job: Job) -> Path:
    """What is sent to the nodes: the job's `workdir`, or the folder of its file."""
    return (Path(job.folder or ".") / str(job.task.get("workdir") or ".")).resolve()
