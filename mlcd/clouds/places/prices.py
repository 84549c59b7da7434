"""What the catalogs offer of what a job asks for."""

from collections.abc import Callable
from dataclasses import replace

from mlcd.catalog import CLOUDS, load_offers, load_rows, unknown_gpu
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.planners.train.market.expected import with_expectations
from mlcd.planners.train.space import accelerators_of, spot_of


def infra(job: Job) -> tuple[str, str]:
    """The cloud and the region that the job asks for; empty for any."""
    resources = job.task.get("resources") or {}
    cloud, _, region = str(resources.get("infra") or resources.get("cloud") or "").lower().partition("/")
    return cloud.strip("*"), region.strip("*")


def priced(job: Job, clouds: tuple[str, ...]) -> tuple[Offer, ...]:
    """What the catalogs of these clouds offer, in the job's region if it has one."""
    _check_gpus(job)
    spot = bool(spot_of(job))
    offers, region = load_offers(clouds, spot=spot, directory=home() / "catalog"), infra(job)[1]
    if region and region not in {offer.region for offer in offers}:
        place = f"{', '.join(clouds)}/{region}"
        raise UserError(f"no prices of {place}; for aws: mlcd catalog refresh aws --region {region}")
    return tuple(offer for offer in offers if region in ("", offer.region))


def with_markets(
    space: Space, job: Job, clouds: tuple[str, ...], extras: Callable[[Offer], Offer] = lambda offer: offer
) -> Space:
    """With the markets of each offer, where the job leaves open how it is rented (`use_spot: any`).

    `extras`: an offer with what is billed beside it.
    """
    if spot_of(job) is not None:
        return space
    if job.ask is not None:
        raise UserError(f"use_spot: any is for `mlcd train`; for `mlcd {job.ask.planner}` say true or false")
    on_spot = {_machine(each): extras(each) for each in load_offers(clouds, spot=True, directory=home() / "catalog")}
    choices = tuple(_with_spot(each, on_spot.get(_machine(each.offer)), job.search.zones) for each in space.choices)
    if not any(choice.markets for choice in choices):
        raise UserError("use_spot: any: no spot price is known of these types and zones; see mlcd offers --spot")
    return with_expectations(replace(space, choices=choices), checkpoints=job.checkpoints)


def _with_spot(choice: Choice, spot: Offer | None, zones: tuple[str, ...]) -> Choice:
    """With a spot and an on-demand market in each of the zones; without zones, in the region as a whole."""
    if spot is None:
        return choice
    region, prices = choice.offer.region, {True: spot.usd_per_hour, False: choice.offer.usd_per_hour}
    here = [zone for zone in zones if zone.startswith(region)] if zones else [""]
    markets = tuple(Market(zone, on_spot, usd, region) for zone in here for on_spot, usd in prices.items())
    return replace(choice, markets=markets)


def _machine(offer: Offer) -> tuple[str, str, str]:
    return offer.cloud, offer.instance_type, offer.region


def _check_gpus(job: Job) -> None:
    """Say which GPU no catalog has, if that is all the job asks for."""
    names = accelerators_of(job)
    known = {row.accelerator for cloud in CLOUDS for row in load_rows(cloud, directory=home() / "catalog")} - {""}
    if names and not {name.lower() for name in names} & {name.lower() for name in known}:
        raise unknown_gpu(names, known)
