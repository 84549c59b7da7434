"""What the catalogs offer of what a job asks for."""

from mlcd.catalog import CLOUDS, load_offers, load_rows, unknown_gpu
from mlcd.core.configuration import Offer
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.planners.train.space import accelerators_of


def infra(job: Job) -> tuple[str, str]:
    """The cloud and the region that the job asks for; empty for any."""
    resources = job.task.get("resources") or {}
    cloud, _, region = str(resources.get("infra") or resources.get("cloud") or "").lower().partition("/")
    return cloud.strip("*"), region.strip("*")


def priced(job: Job, clouds: tuple[str, ...]) -> tuple[Offer, ...]:
    """What the catalogs of these clouds offer, in the job's region if it has one."""
    _check_gpus(job)
    spot = bool((job.task.get("resources") or {}).get("use_spot"))
    offers, region = load_offers(clouds, spot=spot, directory=home() / "catalog"), infra(job)[1]
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
