"""The SkyPilot backend: rents machines of any cloud and runs jobs on them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

from mlcd.clouds.environment import check_environment, secrets
from mlcd.clouds.frameworks import OutputReader, ProgressReader
from mlcd.clouds.launches import KeepsLaunches, before_ordering
from mlcd.clouds.live_job import Timeouts
from mlcd.clouds.local import teardown
from mlcd.clouds.skypilot.follow import Follower
from mlcd.clouds.skypilot.launch_thread import CHECK, LaunchThread, NeverReached
from mlcd.clouds.skypilot.leave_request import REQUESTED_FILE, LeaveRequest
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.tagged_machines import AWS, Machine, TaggedMachines
from mlcd.clouds.skypilot.task import TEARDOWN_S, cluster_name, cluster_of, first_boot, owner_of, shipped, task_of
from mlcd.clouds.usage_recorder import Recorder
from mlcd.core.backend import AlreadyGone, Events, Launch
from mlcd.core.clock import Clock
from mlcd.core.configuration import Offer
from mlcd.core.errors import BackendError, NoCapacity, NothingOrdered, StillUp
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome

STARTUP_LIMIT_S = 900.0
"""Timeout of the first progress report: it includes renting the machines and their setup."""
TIMEOUTS = Timeouts(STARTUP_LIMIT_S, next_report_s=600.0, teardown_s=TEARDOWN_S)
FIRST_REPORT = "first_report"
"""File in a launch's folder: the offsets between the job's clocks and the launch's, known from its first reports."""
TRIES = 20
RETRY_S = 30.0
"""Teardown is retried for ten minutes. By then the machines have stopped by themselves, or a person has to look."""


@dataclass(frozen=True)
class SkyPilot(KeepsLaunches):
    """Runs jobs on SkyPilot clusters. `home`: the state folder. `machines`: finds machines by asking AWS directly."""

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
        """The files that are shipped to every node, by path."""
        return shipped(job, launch.configuration.nodes, launch.rented.offer.workers)

    def reader(self, job: Job, offset_s: float | None) -> OutputReader:
        """Reads the job's output."""
        return ProgressReader(job, offset_s=offset_s)

    def still_runs(self, label: str) -> bool:
        """Whether the machines of a launch are still up after the process that ordered them has ended."""
        folder = self.launches.find(label)
        if folder is None or any((folder / name).exists() for name in ("ended", REQUESTED_FILE)):
            return False
        return self._is_up(self._cluster(folder))

    def rejoin(self, job: Job, launch: Launch) -> Events:
        """Follow a launch that another process ordered, from its start, and tear it down at the end."""
        up_s = self.clock.now().timestamp() - teardown.started_at(self.launches.folder(launch.label))
        started_s = self.clock.elapsed_s() - up_s
        # The time of the last report is unknown, so the timeout of the next report starts now.
        yield from self._follow(job, launch, started_s, self.client.follow, last_report_s=up_s)

    def _follow(
        self,
        job: Job,
        launch: Launch,
        started_s: float,
        start: Callable[[str], LaunchThread],
        last_report_s: float | None = None,
    ) -> Events:
        """Follow a launch to its end and tear it down. `start`: orders or finds the cluster with this name."""
        folder, thread = self.launches.folder(launch.label), None
        name = self._cluster(folder)
        is_up, request_status = partial(self.client.is_up, name), partial(self.client.request_status, name)
        send = partial(self.client.request_leave, name, launch.configuration.nodes)
        leave_request = LeaveRequest(job, launch, folder, send, TIMEOUTS.stop_s(launch))
        # No machines are metered here; the recorder stores when each line of the log arrived.
        with Recorder(folder), (folder / "0.log").open("a", encoding="utf-8") as log:
            try:
                thread = start(name)
                reader, first = partial(self.reader, job), folder / FIRST_REPORT
                yield from Follower(
                    *(job, launch, thread, is_up, request_status, self.clock, TIMEOUTS, started_s, log, first),
                    *(leave_request, reader, last_report_s),
                ).events()
            finally:
                self._tear_down(folder, name, thread)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch; return the seconds it was up, None if it never was.

        A stopped cluster still exists, because its disks are billed.
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
        # SkyPilot notices that a cluster has stopped by itself only when asked, so its time may be too long.
        lifetime_s = order.get("lifetime_s")
        most_s = inf if lifetime_s is None else float(lifetime_s)
        return AlreadyGone(min(billed_s, most_s))

    def _reclaim_unknown(self, folder: Path, name: str) -> float | None:
        """Reclaim machines that SkyPilot does not know: they were never ordered, or its database is lost."""
        try:
            machines = self.machines.find(name) if self.client.rents_with_credentials_here() else []
            self.machines.terminate([machine for machine in machines if not machine.is_gone])
        except BackendError:  # no AWS credentials here, so the machines would have been another cloud's
            return None
        return teardown.up_s(folder) if machines else None

    def billed_s(self, launch: Launch) -> float | None:
        """For how long AWS bills a node; None on other clouds, and if AWS cannot be asked."""
        offer, now = launch.rented.offer, self.clock.now().timestamp()
        machines: list[Machine] = []
        with suppress(BackendError):
            if offer.cloud == "aws" and self.client.rents_with_credentials_here():
                regions = [offer.region] if offer.region else ()
                machines = self.machines.find(self._ordered_name(launch.label), regions)
        return sum(machine.billed_s(now) for machine in machines) / launch.configuration.nodes if machines else None

    def billed_usd(self, labels: Sequence[str]) -> Mapping[str, float]:
        """The cost of each launch in SkyPilot's report: list prices, without disks, addresses and traffic."""
        by_name = self.client.billed_usd()
        names = {label: self._ordered_name(label) for label in labels}
        return {label: by_name[name] for label, name in names.items() if name in by_name}

    def _ordered_name(self, label: str) -> str:
        folder = self.launches.find(label)
        return self.name(label) if folder is None else self._cluster(folder)

    def _cluster(self, folder: Path) -> str:
        return cluster_of(self.launches, folder, owner_of(self.home))

    def leftovers(self) -> set[str]:
        """Launches of this state folder whose cluster still exists."""
        existing = self.client.names()
        return {folder.name for folder in self.launches.folders() if self._cluster(folder) in existing}

    def _check_name(self, name: str) -> None:
        """Check that SkyPilot answers and has no cluster of this name yet: it would run the job on that one."""
        try:
            exists = self.client.is_up(name) is not None
        except BackendError as error:
            raise BackendError(f"{error}; {CHECK}") from error
        if exists:
            raise BackendError(f"a cluster {name} exists that no MLCD launch left; to remove it: sky down {name}")

    def _may_have_been_ordered(self, name: str, offer: Offer) -> bool:
        """Whether a cloud may have provided machines.

        SkyPilot records a cluster before it orders it, and AWS may have refused every order. AWS can only be asked if
        SkyPilot's server rents with this machine's credentials.
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

    def _tear_down(self, folder: Path, name: str, thread: LaunchThread | None = None) -> None:
        """Tear down until nothing is left, and record the time."""
        why, interrupted = "it still exists", None
        for attempt in range(TRIES):
            try:
                if attempt and interrupted is None:
                    self.clock.wait(RETRY_S)
                if thread is not None:
                    thread.stop()
                self.client.down(name)
                if self.client.is_up(name) is None:
                    break
            except BackendError as error:
                why = str(error)
            except KeyboardInterrupt as error:  # raised again after the machines are gone: until then they are billed
                interrupted = error
        else:
            raise StillUp(f"{name} could not be torn down ({why}); do it by hand: sky down {name}")
        teardown.record_end(folder, self.clock.now().timestamp())
        if interrupted is not None:
            raise interrupted
