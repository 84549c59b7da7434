"""`--on skypilot` and `--on skypilot:CLOUD`: machines of a real cloud."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from mlcd.catalog import clouds_in, retired_types
from mlcd.clouds.environment import check_environment
from mlcd.clouds.live_job import live_profiler
from mlcd.clouds.places.prices import catalog_offers, check_types, cloud_and_region, with_markets
from mlcd.clouds.skypilot.backend import STARTUP_LIMIT_S, SkyPilot
from mlcd.clouds.skypilot.credentials import usable_clouds
from mlcd.clouds.skypilot.extra_costs import with_extra_costs
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.tagged_machines import AWS, TaggedMachines
from mlcd.clouds.skypilot.task import checkpoint_folder
from mlcd.core.clock import Clock, WallClock
from mlcd.core.configuration import ProbeTime, Space
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.train.space import grid, narrow

SKYPILOT_PROBE = ProbeTime(1_380.0, 60.0)
"""Startup and teardown of a cloud's machines take minutes. The rest of this time is as long as the paper's probes."""


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The cloud of the machines that SkyPilot can rent."""
    cloud = skypilot_cloud(job, rest, Sdk(), WallClock(started_at or datetime.now(UTC)))
    if started_at is None:
        check_types(job, clouds_of(job, rest))
    return cloud


def skypilot_cloud(job: Job, named: str, client: Sdk, clock: Clock, machines: TaggedMachines = AWS) -> Cloud:
    """The cloud of the machines that this client can rent. `named`: the cloud in `--on skypilot:CLOUD`."""
    clouds = clouds_of(job, named)
    if job.checkpoints:
        checkpoint_folder(job, "")  # raises an error before anything is rented
    offers = tuple(with_extra_costs(offer, job) for offer in catalog_offers(job, clouds))
    backend = SkyPilot(client, home(), clock, machines)
    space = grid(offers, job.search.nodes, probe_time=SKYPILOT_PROBE, startup_limit_s=STARTUP_LIMIT_S)
    space = with_markets(without_retired_types(narrow(space, job)), job, clouds, partial(with_extra_costs, job=job))

    def check(job: Job) -> None:
        client.load()
        check_environment(job)

    return Cloud(space, backend, live_profiler(backend), clock, check=check)


def clouds_of(job: Job, named: str) -> tuple[str, ...]:
    """The cloud that is named, in `--on` or in the job; else all clouds with credentials."""
    cloud = named.lower() or cloud_and_region(job)[0]
    clouds = (cloud,) if cloud else usable_clouds(clouds_in(home() / "catalog"))
    if not clouds:
        raise UserError("no credentials of any cloud found; see: mlcd check skypilot. Or name one: --on skypilot:aws")
    return clouds


def without_retired_types(space: Space) -> Space:
    """The space without types that their cloud has retired."""
    since = {c.offer.instance_type: retired_types().get((c.offer.cloud, c.offer.instance_type)) for c in space.choices}
    choices = tuple(choice for choice in space.choices if since[choice.offer.instance_type] is None)
    if not choices:
        gone = ", ".join(f"{name} (since {when})" for name, when in since.items())
        raise UserError(f"{gone}: retired by its cloud, so it cannot be rented; choose another type: mlcd offers")
    return replace(space, choices=choices)
