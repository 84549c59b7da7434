"""Trials on machines that are rented through SkyPilot: one for each, with the server and the load on it."""

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
        """One trial, from the order of its machine until that is gone."""
        with before_ordering():
            task = trial_task(job)
        yield from super().run(replace(job, task=task), launch)

    def files(self, job: Job, launch: Launch) -> dict[str, str]:
        """What the machine gets."""
        return {**super().files(job, launch), **trial_files(job, launch)}

    def reader(self, job: Job, offset_s: float | None) -> TrialReader:
        """Reads the events of the trial."""
        return TrialReader(offset_s)
