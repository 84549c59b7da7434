"""Names of backends to clouds: what can be rented there, and how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mlcd.assemble.home import home
from mlcd.backend import Backend, Provenance
from mlcd.backends import Recorded, Recording, Simulated, load_recording
from mlcd.backends.local import Local, NodeTypes, load_node_types, what_nodes_lack, what_probes_share, why_not_isolated
from mlcd.backends.ray import Ray, available
from mlcd.backends.simulated import STARTUP_LIMIT_S
from mlcd.backends.skypilot import STARTUP_LIMIT_S as SKYPILOT_STARTUP_S
from mlcd.backends.skypilot import Client, Sdk, SkyPilot, checkpoint_folder, clouds_at_hand
from mlcd.catalog import CLOUDS, load_offers, load_rows, retired_types, unknown_gpu
from mlcd.clock import Clock, VirtualClock, WallClock
from mlcd.configuration import Offer, ProbeTime, Space
from mlcd.errors import UnknownName, UserError
from mlcd.guarantee import rounded_up
from mlcd.job import Job, Search
from mlcd.planners.elastic import elastic_space
from mlcd.planners.train import accelerators_of, grid, narrow
from mlcd.profilers import FunctionsProfiler, ServingProfiler, TrainingProfiler
from mlcd.units import format_usd

BACKENDS = ("simulated", "recorded:DIR", "local", "local:FILE", "ray:FILE", "skypilot", "skypilot:CLOUD", "functions")

LIVE_NOISE = 0.02
"""Relative error that is assumed of a real probe at the least: minutes cannot see what hours bring."""

LIVE_SETTLES_S = 60.0
"""Real rates wander: neighbours, caches, clocks. Ten seconds differed from the next ten by 8 % on a quiet machine."""

LOCAL_TIGHT = 0.15
"""With so wide an interval a probe may end on this machine, where it is to take seconds: after 12 s of measuring."""

ELASTIC_LOOSER = 2.0
"""A curve is fitted through all probes of an elastic job: each may be known half as well, and takes a quarter."""

LOCAL_WINDOW_S = 15.0
"""Over which a run on this machine is watched: its jobs take minutes, not hours."""

SKYPILOT_PROBE = ProbeTime(1_200.0, 60.0)
"""A cloud's machines take minutes to come and to go; what is left of this is as long as the paper's probes."""


@dataclass(frozen=True)
class Cloud:
    """A place to search and run on: what can be rented there, and how it is measured.

    `lacks`: what its machines do not keep of what their types say, in a line for the user. `close`: what is put away
    when a run is over.
    """

    space: Space
    backend: Backend
    profiler: TrainingProfiler | ServingProfiler | FunctionsProfiler
    clock: Clock
    lacks: str = ""
    close: Callable[[], None] = lambda: None

    @property
    def provenance(self) -> Provenance:
        """Where its numbers come from."""
        return self.backend.provenance


def cloud(on: str, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
    """The cloud of that name, with the part of its space that the job asks for.

    A run that goes on has used `elapsed_s` of its time on a virtual clock, and on the wall's all since `started_at`.
    """
    place = _cloud(on, job, elapsed_s, started_at)
    return replace(place, space=under_max_hourly(place.space, job.search))


def under_max_hourly(space: Space, search: Search) -> Space:
    """The part of a space that may be rented, for probes and for the job itself."""
    if search.max_hourly_usd is None:
        return space
    affordable = space.up_to(search.max_hourly_usd)
    if not affordable.choices:
        cheapest = float(space.usd_per_hour.min())
        raise UserError(
            f"max_hourly {format_usd(search.max_hourly_usd)}: the cheapest configuration costs {format_usd(cheapest)} "
            f"an hour; to allow it: --max-hourly {rounded_up(cheapest)}"
        )
    return affordable


def _cloud(on: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
    if job.elastic is not None:
        rigid = replace(job, elastic=None, search=replace(job.search, nodes=(1, job.elastic.workers[1])))
        place = _cloud(on, rigid, elapsed_s, started_at)
        assert isinstance(place.profiler, TrainingProfiler)  # as on every cloud of machines
        tight = place.profiler.tight * ELASTIC_LOOSER if place.profiler.tight is not None else None
        return replace(place, space=elastic_space(place.space, job), profiler=replace(place.profiler, tight=tight))
    kind, _, rest = on.partition(":")
    if kind == "simulated" and not rest:
        return _simulated(job, elapsed_s)
    if kind == "recorded" and rest:
        return recorded_cloud(load_recording(Path(rest)), job, elapsed_s=elapsed_s)
    clock = WallClock(started_at or datetime.now(UTC))
    if kind == "local":
        return _local(job, Path(rest) if rest else None, clock)
    if kind == "ray":
        return _ray(job, Path(rest) if rest else None, clock)
    if kind == "skypilot":
        return skypilot_cloud(job, rest, Sdk(), clock)
    raise UnknownName("backend", on, BACKENDS)


def recorded_cloud(
    recording: Recording, job: Job, *, noise: float = 0.0, seed: int = 0, elapsed_s: float = 0.0
) -> Cloud:
    """A recording as a cloud. Its probes take their full recorded time, and what noise is stated is assumed."""
    clock = VirtualClock(elapsed_s)
    backend = Recorded(recording, clock, noise, seed)
    floor = 0.0 if noise else 0.01
    profiler = TrainingProfiler(backend, noise_floor=floor, tight=None, warm_up=False, stated_noise=noise)
    return Cloud(narrow(recording.space, job), backend, profiler, clock)


def _simulated(job: Job, elapsed_s: float) -> Cloud:
    offers = _priced(job, (_infra(job)[0] or "aws",))
    clock = VirtualClock(elapsed_s)
    backend = Simulated(clock, job.search.seed)
    space = grid(offers, job.search.nodes, startup_limit_s=STARTUP_LIMIT_S)
    return Cloud(narrow(space, job), backend, TrainingProfiler(backend), clock)


def skypilot_cloud(job: Job, named: str, client: Client, clock: Clock) -> Cloud:
    """Machines of a cloud that is named, here or in the job; else of every cloud that there are credentials for."""
    clouds = tuple(cloud for cloud in (named.lower() or _infra(job)[0],) if cloud) or clouds_at_hand()
    if not clouds:
        raise UserError("no credentials of any cloud found; see: mlcd check skypilot. Or name one: --on skypilot:aws")
    if job.checkpoints:
        checkpoint_folder(job, "")  # told before anything is rented
    offers = _priced(job, clouds)
    backend = SkyPilot(client, home(), clock)
    space = grid(offers, job.search.nodes, probe_time=SKYPILOT_PROBE, startup_limit_s=SKYPILOT_STARTUP_S)
    return Cloud(_rentable(narrow(space, job)), backend, _live_profiler(backend), clock)


def _rentable(space: Space) -> Space:
    """Without types that their cloud has retired."""
    since = {c.offer.instance_type: retired_types().get((c.offer.cloud, c.offer.instance_type)) for c in space.choices}
    choices = tuple(choice for choice in space.choices if since[choice.offer.instance_type] is None)
    if not choices:
        gone = ", ".join(f"{name} (since {when})" for name, when in since.items())
        raise UserError(f"{gone}: retired by its cloud, and not to be rented any more; name another type: mlcd offers")
    return replace(space, choices=choices)


def _infra(job: Job) -> tuple[str, str]:
    """The cloud and the region that the job asks for; empty for any."""
    resources = job.task.get("resources") or {}
    cloud, _, region = str(resources.get("infra") or resources.get("cloud") or "").lower().partition("/")
    return cloud.strip("*"), region.strip("*")


def _priced(job: Job, clouds: tuple[str, ...]) -> tuple[Offer, ...]:
    """What the catalogs of these clouds offer, in the job's region if it has one."""
    _check_gpus(job)
    spot = bool((job.task.get("resources") or {}).get("use_spot"))
    offers, region = load_offers(clouds, spot=spot, directory=home() / "catalog"), _infra(job)[1]
    if region and region not in {offer.region for offer in offers}:
        place = f"{', '.join(clouds)}/{region}"
        raise UserError(f"no prices of {place}; for aws: mlcd catalog refresh aws --region {region}")
    return tuple(offer for offer in offers if region in ("", offer.region))


def _check_gpus(job: Job) -> None:
    """Say which GPU no catalog has, if that is all the job asks for."""
    names = accelerators_of(job)
    known = {row.accelerator for cloud in CLOUDS for row in load_rows(cloud, directory=home() / "catalog")} - {""}
    if names and not {name.lower() for name in names} & {name.lower() for name in known}:
        raise unknown_gpu(names, known)


def local_backend(node_types: NodeTypes | None = None, clock: Clock | None = None) -> Local:
    """The nodes of this machine."""
    return Local(
        node_types or load_node_types(),
        home(),
        clock or WallClock(datetime.now(UTC)),
        isolated=why_not_isolated() is None,
    )


def _local(job: Job, types: Path | None, clock: WallClock) -> Cloud:
    node_types = load_node_types(types)
    backend = local_backend(node_types, clock)
    fewest, most = (max(job.search.nodes[0], node_types.nodes[0]), min(job.search.nodes[1], node_types.nodes[1]))
    offers = tuple(each.offer for each in node_types.types)
    space = grid(offers, (fewest, most), probe_time=node_types.probe_time, startup_limit_s=node_types.startup_s)
    profiler = replace(_live_profiler(backend), tight=LOCAL_TIGHT, window_s=LOCAL_WINDOW_S)
    lacks = "; ".join(filter(None, (what_nodes_lack(), what_probes_share(job, home()))))
    return Cloud(narrow(space, job), backend, profiler, clock, lacks)


def _ray(job: Job, types: Path | None, clock: WallClock) -> Cloud:
    node_types, choices = available(job, types)
    backend = Ray(node_types, home(), clock)
    space = Space(choices, node_types.probe_time, node_types.startup_s)
    return Cloud(narrow(space, job), backend, _live_profiler(backend), clock)


def _live_profiler(backend: Backend) -> TrainingProfiler:
    # Tight is wider than the noise that is assumed at the least: otherwise no probe would ever end before its time.
    return TrainingProfiler(backend, noise_floor=LIVE_NOISE, settles_s=LIVE_SETTLES_S, tight=4 * LIVE_NOISE)
