"""The offers and markets of the catalogs that fit a job, with their prices."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from mlcd.catalog import (
    OfferRow,
    clouds_in,
    egress_between_usd_per_gb,
    load_offers,
    load_rows,
    regions_of,
    unknown_gpu,
)
from mlcd.core.configuration import Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.planner import DEFAULT_PLANNER
from mlcd.planners.train.market.expected_cost import with_expected_spot_costs
from mlcd.planners.train.space import accelerators_of, check_instances, spot_of


def cloud_and_region(job: Job) -> tuple[str, str]:
    """The cloud and the region that the job requires; each is empty for any."""
    resources = job.task.get("resources") or {}
    cloud, _, region = str(resources.get("infra") or resources.get("cloud") or "").lower().partition("/")
    return cloud.strip("*"), region.strip("*")


def catalog_offers(job: Job, clouds: tuple[str, ...]) -> tuple[Offer, ...]:
    """The offers in the catalogs of these clouds, in the job's region if it has one.

    If the job names zones, each type appears once, in the region with its lowest on-demand price: a type is equally
    fast in all regions.
    """
    _check_gpus(job)
    spot = bool(spot_of(job))
    offers, region = load_offers(clouds, spot=spot, directory=home() / "catalog"), cloud_and_region(job)[1]
    if region and region not in {offer.region for offer in offers}:
        place = f"{', '.join(clouds)}/{region}"
        raise UserError(f"no prices of {place}; for aws: mlcd catalog refresh aws --region {region}")
    if spot_of(job) is None and job.search.zones:
        rows = _rows(clouds)
        zones = _zones(job, rows)
        return tuple(row.offer() for row in _cheapest(row for row in rows if row.region in zones))
    return tuple(offer for offer in offers if region in ("", offer.region))


def check_types(job: Job, clouds: tuple[str, ...]) -> None:
    """Raise for an instance pattern that is in no catalog. For new runs only: a type may leave a catalog later."""
    offers = tuple(row.offer() for row in _rows(clouds))
    check_instances(job, offers, (row.instance_type for row in _rows(clouds_in(home() / "catalog"))))


def with_markets(
    space: Space, job: Job, clouds: tuple[str, ...], extras: Callable[[Offer], Offer] = lambda offer: offer
) -> Space:
    """Add the markets of each offer, for a job with `use_spot: any`. `extras`: adds other costs to an offer's price."""
    if spot_of(job) is not None:
        return space
    if job.ask is not None and job.ask.planner != DEFAULT_PLANNER:
        raise UserError(f"use_spot: any is for `mlcd train`; for `mlcd {job.ask.planner}` say true or false")
    rows = _rows(clouds)
    zones = _zones(job, rows)
    on_spot = {_machine(row): row for row in rows if row.spot_usd_per_hour is not None}

    def markets(offer: Offer) -> Iterator[Market]:
        named = zones or {offer.region: ("",)}
        sold = {region: on_spot.get((offer.cloud, offer.instance_type, region)) for region in named}
        return _markets(job, {region: row for region, row in sold.items() if row is not None}, named, extras)

    choices = tuple(replace(choice, markets=tuple(markets(choice.offer))) for choice in space.choices)
    if not any(choice.markets for choice in choices):
        raise UserError("use_spot: any: no spot price is known for these types and zones; see mlcd offers --spot")
    return with_expected_spot_costs(replace(space, choices=choices), checkpoints=job.checkpoints)


def _markets(
    job: Job, rows: Mapping[str, OfferRow], zones: Mapping[str, tuple[str, ...]], extras: Callable[[Offer], Offer]
) -> Iterator[Market]:
    """A spot and an on-demand market in each zone. `rows`: of one type, by region. The zone '' is any of a region."""
    for region, row in rows.items():
        move_usd = _move_usd(job, row.cloud, region, rows)
        for zone in zones[region]:
            for spot in (True, False):
                offer = extras(row.offer(spot=spot, zone=zone))
                yield Market(zone, spot, offer.usd_per_hour, region, offer.usd_per_launch, move_usd)


def _move_usd(job: Job, cloud: str, region: str, regions: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """The cost of moving the job's checkpoint to a region, from each of the other regions."""
    others = [each for each in regions if each != region] if job.checkpoints else []
    if others and job.checkpoint_gb is None:
        raise UserError("zones in several regions: moving a checkpoint costs money; add `checkpoint_size: 50GB`")
    gb = job.checkpoint_gb or 0.0
    return tuple((each, gb * egress_between_usd_per_gb(cloud, each, region)) for each in others)


def _zones(job: Job, rows: Iterable[OfferRow]) -> Mapping[str, tuple[str, ...]]:
    """The zones that the job names, by their region."""
    known: dict[str, set[str]] = {}
    for row in rows:
        known.setdefault(row.region, set()).update(row.spot_usd_by_zone)
    zones, required = regions_of(job.search.zones, known), cloud_and_region(job)[1]
    if elsewhere := [zone for region, names in zones.items() for zone in names if required not in ("", region)]:
        several = "for zones in several regions, name only the cloud there: `infra: aws`"
        raise UserError(f"zones: '{elsewhere[0]}' is not in {required}, the region in `infra`; {several}")
    return zones


def _cheapest(rows: Iterable[OfferRow]) -> Iterable[OfferRow]:
    """For each type, the row of its cheapest region on demand; regions that also have a spot price come first."""
    chosen: dict[tuple[str, str], OfferRow] = {}
    for row in rows:
        best = chosen.setdefault((row.cloud, row.instance_type), row)
        if (row.spot_usd_per_hour is None, row.usd_per_hour) < (best.spot_usd_per_hour is None, best.usd_per_hour):
            chosen[row.cloud, row.instance_type] = row
    return chosen.values()


def _machine(row: OfferRow) -> tuple[str, str, str]:
    return row.cloud, row.instance_type, row.region


def _rows(clouds: Iterable[str]) -> tuple[OfferRow, ...]:
    return tuple(row for cloud in clouds for row in load_rows(cloud, directory=home() / "catalog"))


def _check_gpus(job: Job) -> None:
    """Raise an error if no catalog has any of the GPUs that the job names."""
    names = accelerators_of(job)
    known = {row.accelerator for row in _rows(clouds_in(home() / "catalog"))} - {""}
    if names and not {name.lower() for name in names} & {name.lower() for name in known}:
        raise unknown_gpu(names, known)
