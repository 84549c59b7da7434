"""Trials on machines rented through SkyPilot: one machine per trial, which runs the server and the load generator."""

from dataclasses import dataclass, replace

from mlcd.clouds.launches import before_ordering
from mlcd.clouds.serving.event_lines import TrialReader
from mlcd.clouds.serving.remote_setup import trial_files, trial_task
from mlcd.clouds.skypilot.backend import SkyPilot
from mlcd.core.backend import Events, Launch
from mlcd.core.job import Job


@dataclass(frozen=True)
class RentedServers(SkyPilot):
    """Rents a machine, serves a model on it with a launch's knobs, load-tests it there, and tears the machine down."""

    def run(self, job: Job, launch: Launch) -> Events:
        """Run one trial, from ordering its machine to its teardown."""
        with before_ordering():
            task = trial_task(job)
        yield from super().run(replace(job, task=task), launch)

    def files(self, job: Job, launch: Launch) -> dict[str, str]:
        """The files that are copied to the machine."""
        return {**super().files(job, launch), **trial_files(job, launch)}

    def reader(self, job: Job, offset_s: float | None) -> TrialReader:
        """The reader of the trial's events."""
        return TrialReader(offset_s)
