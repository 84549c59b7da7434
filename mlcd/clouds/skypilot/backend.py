"""The skypilot backend: machines of any cloud, and jobs on them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

from mlcd.clouds.environment import check_environment, secrets
from mlcd.clouds.launches import KeepsLaunches, before_ordering
from mlcd.clouds.live import Timeouts
from mlcd.clouds.local import teardown
from mlcd.clouds.platforms import Reader, Reads
from mlcd.clouds.skypilot.follow import CHECK, Follower, NeverReached, Stream
from mlcd.clouds.skypilot.leave import ASKED, Leaving
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.tagged import AWS, Machine, TaggedMachines
from mlcd.clouds.skypilot.task import TEARDOWN_S, cluster_name, cluster_of, first_boot, owner_of, shipped, task_of
from mlcd.clouds.usage_recorder import Recorder
from mlcd.core.backend import AlreadyGone, Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.configuration import Offer
from mlcd.core.errors import BackendError, NoCapacity, NothingOrdered, StillUp
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome

STARTUP_LIMIT_S = 900.0
"""Timeout of machines, their setup and the first report of progress."""
TIMEOUTS = Timeouts(STARTUP_LIMIT_S, next_report_s=600.0, teardown_s=TEARDOWN_S)
FIRST_REPORT = "first_report"
"""File in a launch's folder: the offsets between the job's clocks and the launch's, which its first reports give."""
TRIES = 20
RETRY_S = 30.0
"""Teardown is retried for ten minutes: by then a launch has stopped by itself, or a person has to look at it."""


@dataclass(frozen=True)
class SkyPilot(KeepsLaunches):
    """Runs jobs on SkyPilot clusters. `home`: holds launches. `machines`: what AWS itself says."""

    client: Sdk
    home: Path
    clock: Clock
    machines: TaggedMachines = AWS
    bill_source = "SkyPilot's cost report: list prices of the machines, without disks, addresses and traffic"

    def name(self, label: str) -> str:
        """The name of a launch's cluster."""
        return cluster_name(owner_of(self.home), label)

    def run(self, job: Job, launch: Launch) -> Events:
        """Rent the machines, run the job on them, and tear them down, verified."""
        started_s, name = self.clock.elapsed_s(), self.name(launch.label)
        started_at = self.clock.now().timestamp()
        with before_ordering():
            check_environment(job)
            self._check_name(name)
        folder = self.launches.open(launch, started_at=started_at, cluster=name, lifetime_s=launch.lifetime_s)
        for path, text in self.files(job, launch).items():
            target = folder / "ship" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        task = task_of(job, launch, name, (folder / "ship").resolve(), started_at, secrets(job))
        failure = None
        (folder / "0.log").write_text("", encoding="utf-8")
        try:
            yield from self._follow(
                job,
                launch,
                started_s,
                partial(self.client.launch, task=task, first_boot=first_boot(launch, started_at)),
            )
        except StillUp:
            raise
        except BackendError as error:
            failure = error
        if failure is not None and not self._may_have_been_ordered(name, launch.rented.offer):
            raise failure if isinstance(failure, NothingOrdered) else NothingOrdered(str(failure))
        if isinstance(failure, NoCapacity | NeverReached):  # some of the machines may have been up and billed
            yield Ended(self.clock.elapsed_s() - started_s, Outcome.LAUNCH_FAILED, str(failure))
        elif failure is not None:
            raise BackendError(str(failure))

    def files(self, job: Job, launch: Launch) -> dict[str, str]:
        """What every node gets in the folder that is shipped, by path."""
        return shipped(job, launch.configuration.nodes, launch.rented.offer.workers)

    def reader(self, job: Job, offset_s: float | None) -> Reads:
        """Reads the job's output."""
        return Reader(job, offset_s=offset_s)

    def still_runs(self, label: str) -> bool:
        """Whether the machines of a launch are up, though the process that ordered them is gone."""
        folder = self.launches.find(label)
        if folder is None or any((folder / name).exists() for name in ("ended", ASKED)):
            return False
        return self._is_up(self._cluster(folder))

    def rejoin(self, job: Job, launch: Launch) -> Events:
        """Follow a launch that another process ordered, from its start, and tear it down at the end."""
        up_s = self.clock.now().timestamp() - teardown.started_at(self.launches.folder(launch.label))
        started_s = self.clock.elapsed_s() - up_s
        # The time of its last report is unknown, so the timeout of the next one starts now.
        yield from self._follow(job, launch, started_s, self.client.follow, last_report_s=up_s)

    def _follow(
        self,
        job: Job,
        launch: Launch,
        started_s: float,
        start: Callable[[str], Stream],
        last_report_s: float | None = None,
    ) -> Events:
        """Follow a launch to its end, and tear it down. `start`: orders or finds the cluster of a name."""
        folder, following = self.launches.folder(launch.label), None
        name = self._cluster(folder)
        is_up, ask, first = partial(self.client.is_up, name), partial(self.client.ask, name), folder / FIRST_REPORT
        leave = partial(self.client.leave, name, launch.configuration.nodes)
        leaving = Leaving(job, launch, folder, leave, TIMEOUTS.stop_s(launch))
        with Recorder(folder), (folder / "0.log").open("a", encoding="utf-8") as log:  # when a line of the log came
            try:
                following = start(name)
                reader = partial(self.reader, job)
                yield from Follower(
                    *(job, launch, following, is_up, ask, self.clock, TIMEOUTS, started_s, log, first),
                    *(leaving, reader, last_report_s),
                ).events()
            finally:
                self._tear_down(folder, name, following)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch; return the seconds it was up, None if it never was.

        A cluster that is stopped exists: its disks are billed.
        """
        folder = self.launches.find(label)
        if folder is None:
            return None
        if (folder / "ended").exists():
            return AlreadyGone(teardown.up_s(folder))
        order, name = self.launches.order(folder), self._cluster(folder)
        exists = self.client.is_up(name) is not None
        self._tear_down(folder, name)
        if exists:
            return teardown.up_s(folder)
        billed_s = self.client.billed_s(name)
        if billed_s is None:
            return self._reclaim_unknown(folder, name)
        # SkyPilot notices only when asked that a cluster has stopped by itself: its time may be too long.
        lifetime_s = order.get("lifetime_s")
        most_s = inf if lifetime_s is None else float(lifetime_s)
        return AlreadyGone(min(billed_s, most_s))

    def _reclaim_unknown(self, folder: Path, name: str) -> float | None:
        """Reclaim machines of which SkyPilot knows nothing: it was never asked for them, or its database is lost."""
        try:
            machines = self.machines.find(name) if self.client.rents_with_credentials_here() else []
            self.machines.terminate([machine for machine in machines if not machine.is_gone])
        except BackendError:  # no credentials of AWS: the machines would have been another cloud's
            return None
        return teardown.up_s(folder) if machines else None

    def billed_s(self, launch: Launch) -> float | None:
        """How long AWS says that a node was there; None on other clouds, and where AWS cannot be asked."""
        offer, now = launch.rented.offer, self.clock.now().timestamp()
        machines: list[Machine] = []
        with suppress(BackendError):
            if offer.cloud == "aws" and self.client.rents_with_credentials_here():
                regions = [offer.region] if offer.region else ()
                machines = self.machines.find(self._name_ordered(launch.label), regions)
        return sum(machine.billed_s(now) for machine in machines) / launch.configuration.nodes if machines else None

    def billed_usd(self, labels: Sequence[str]) -> Mapping[str, float]:
        """What SkyPilot's cost report says: list prices of machines, without disks, addresses and traffic."""
        by_name = self.client.billed_usd()
        names = {label: self._name_ordered(label) for label in labels}
        return {label: by_name[name] for label, name in names.items() if name in by_name}

    def _name_ordered(self, label: str) -> str:
        folder = self.launches.find(label)
        return self.name(label) if folder is None else self._cluster(folder)

    def _cluster(self, folder: Path) -> str:
        return cluster_of(self.launches, folder, owner_of(self.home))

    def leftovers(self) -> set[str]:
        """Launches of this state folder whose cluster still exists."""
        existing = self.client.names()
        return {folder.name for folder in self.launches.folders() if self._cluster(folder) in existing}

    def _check_name(self, name: str) -> None:
        """Check that SkyPilot answers and has no cluster of this name: it would run the job there."""
        try:
            exists = self.client.is_up(name) is not None
        except BackendError as error:
            raise BackendError(f"{error}; {CHECK}") from error
        if exists:
            raise BackendError(f"there is a cluster {name} that no launch of ours left; see to it: sky down {name}")

    def _may_have_been_ordered(self, name: str, offer: Offer) -> bool:
        """Whether a cloud may have given machines.

        SkyPilot records a cluster before it orders it, and AWS may have refused every order. AWS is asked with this
        machine's credentials; a SkyPilot server elsewhere may rent with others.
        """
        try:
            if self.client.billed_s(name) is None:
                return False
            if offer.cloud != "aws" or not self.client.rents_with_credentials_here():
                return True
            return bool(self.machines.find(name, [offer.region] if offer.region else ()))
        except BackendError:
            return True

    def _is_up(self, name: str) -> bool:
        return self.client.is_up(name) is True

    def _tear_down(self, folder: Path, name: str, following: Stream | None = None) -> None:
        """Tear down until nothing is left, and record the time."""
        why, interrupted = "it is still there", None
        for attempt in range(TRIES):
            try:
                if attempt and interrupted is None:
                    self.clock.wait(RETRY_S)
                if following is not None:
                    following.stop()
                self.client.down(name)
                if self.client.is_up(name) is None:
                    break
            except BackendError as error:
                why = str(error)
            except KeyboardInterrupt as error:  # raised again after the machines are gone: until then they are billed
                interrupted = error
        else:
            raise StillUp(f"{name} could not be torn down ({why}); see to it: sky down {name}")
        teardown.record_end(folder, self.clock.now().timestamp())
        if interrupted is not None:
            raise interrupted
