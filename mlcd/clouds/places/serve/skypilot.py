"""`mlcd serve --on skypilot` and `skypilot:CLOUD`: each trial on a machine of a real cloud."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from itertools import product

from mlcd.clouds.places.prices import catalog_offers
from mlcd.clouds.places.serve.local import LIVE_NOISE, LIVE_TIGHT, check_model
from mlcd.clouds.places.skypilot import clouds_of, without_retired_types
from mlcd.clouds.servers.settings import Settings
from mlcd.clouds.serving.live import LOAD_KNOBS
from mlcd.clouds.serving.rented import RentedServers
from mlcd.clouds.skypilot.backend import STARTUP_LIMIT_S
from mlcd.clouds.skypilot.extra_costs import with_extra_costs
from mlcd.clouds.skypilot.sdk import Sdk
from mlcd.clouds.skypilot.tagged_machines import AWS, TaggedMachines
from mlcd.clouds.skypilot.task import TEARDOWN_S
from mlcd.core.clock import Clock, WallClock
from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.nouns import INSTANCE, KnobTable, ServerSettings, ServingTask, service_of


def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    """The place, with SkyPilot's own client."""
    return rented_cloud(job, rest, Sdk(), WallClock(started_at or datetime.now(UTC)))


def rented_cloud(job: Job, named: str, client: Sdk, clock: Clock, machines: TaggedMachines = AWS) -> Cloud:
    """All combinations of the knobs on every instance type among them."""
    service = service_of(job)
    table = _table(service)
    offers = [with_extra_costs(offer, job) for offer in catalog_offers(job, clouds_of(job, named))]
    choices = tuple(_choice(table, _cheapest(str(name), offers)) for name in table.knobs[INSTANCE])
    trial = ProbeTime(STARTUP_LIMIT_S + service.trial_s + TEARDOWN_S, 0.0)
    fitting = tuple(choice for choice in choices if choice.settings)
    if not fitting:
        raise UserError("knobs: threads, memory_gb: no instance type has that many cores and that much memory")
    space = without_retired_types(Space(fitting, trial, STARTUP_LIMIT_S))
    backend = RentedServers(client, home(), clock, machines)
    profiler = ServingProfiler(backend, noise_floor=LIVE_NOISE, tight=LIVE_TIGHT)
    return Cloud(space, backend, profiler, clock, check=partial(check, client=client))


def _table(service: ServingTask) -> KnobTable:
    """The knobs; UserError for values that our server does not accept."""
    if service.table is None or INSTANCE not in service.table.knobs:
        raise UserError(
            "--on skypilot: name the instance types to try: --knobs FILE, "
            f"with `{INSTANCE}: [m5.large, c5.xlarge]` among its knobs"
        )
    names = [name for name in service.table.knobs if name not in (INSTANCE, *LOAD_KNOBS)]
    for values in product(*(service.table.knobs[name] for name in names)):
        Settings.of(dict(zip(names, values, strict=True)))
    return service.table


def _cheapest(name: str, offers: list[Offer]) -> Offer:
    """The cheapest offer of an instance type."""
    of_type = [offer for offer in offers if offer.instance_type == name]
    if not of_type:
        raise UnknownName("instance type", name, sorted({offer.instance_type for offer in offers}))
    return min(of_type, key=lambda offer: offer.usd_per_hour)


def _choice(table: KnobTable, offer: Offer) -> Choice:
    """An instance type with the settings that its cores and memory allow."""
    names = list(table.knobs)
    values = ((offer.instance_type,) if name == INSTANCE else table.knobs[name] for name in names)
    every = [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]
    fitting = [
        knobs
        for knobs in every
        if float(knobs.get("threads", 1)) <= offer.vcpus and float(knobs.get("memory_gb", 0)) <= offer.memory_gb
    ]
    return Choice(offer, settings=tuple(ServerSettings(tuple(knobs.items())) for knobs in fitting))


def check(job: Job, client: Sdk) -> None:
    """UserError for contradictions, before anything is rented."""
    client.load()
    service = service_of(job)
    check_model(service, _table(service))
