"""Previews a submission as `mlcd plan` does: from prices and hints of the job file, at no cost."""

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter

from mlcd.catalog import clouds_in
from mlcd.clouds.places.skypilot import clouds_of
from mlcd.clouds.skypilot.credentials import find_credentials
from mlcd.core.errors import UserError
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.ledger import Started
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import first_probes, with_probe_limit
from mlcd.core.strategy import Finish
from mlcd.core.version import VERSION
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.modeling.outlook import Chance, outlook
from mlcd.reports.functions.words import decision_sentence
from mlcd.service.workers.submissions import SubmissionPreview, from_json


@dataclass(frozen=True)
class FirstProbe:
    """One of the search's first probes, if no earlier runs are taken into account."""

    configuration: Annotated[str, Field(description="Where it would run.")]
    worst_usd: Annotated[float, Field(description="Its maximum cost in dollars.")]
    worst_s: Annotated[float, Field(description="Its maximum duration in seconds.")]


@dataclass(frozen=True)
class Credentials:
    """Whether a cloud's credentials are on the machine of this service."""

    cloud: Annotated[str, Field(description="The cloud.")]
    found: Annotated[bool, Field(description="Whether credentials were found.")]
    to_do: Annotated[str, Field(description="How to set them up; empty if they were found.")]


@dataclass(frozen=True)
class Ahead:
    """The outlook of a search. Modelled from published rates, not measured."""

    configurations: Annotated[int | None, Field(description="Configurations in the search space; null if not known.")]
    first: Annotated[list[FirstProbe], Field(description="The first probes; empty if nothing would be probed.")]
    usd_per_hour: Annotated[
        tuple[float, float] | None,
        Field(description="Price range: the cheapest and the most expensive instance type at the smallest size."),
    ]
    chance: Annotated[str, Field(description="Whether the limits look possible: likely, doubtful, unlikely, unknown.")]
    because: Annotated[str, Field(description="Why.")]
    best: Annotated[str | None, Field(description="The expected best configuration; null if not known.")]
    usd: Annotated[float | None, Field(description="The expected cost of the job there, in dollars.")]
    seconds: Annotated[float | None, Field(description="The expected duration of the job there, in seconds.")]


@dataclass(frozen=True)
class Previewed(SubmissionPreview):
    """A preview of a run, and the cost that has to be agreed to; nothing is reserved."""

    ahead: Annotated[
        Ahead | None, Field(description="The outlook as `mlcd plan` shows it; null if the run costs no real money.")
    ]
    asks: Annotated[str | None, Field(description="The real money that it may spend, in words; null if none.")]
    credentials: Annotated[list[Credentials], Field(description="The clouds that it may rent from.")]


_AHEAD: TypeAdapter[Ahead] = TypeAdapter(Ahead)


def ahead_of(submitted: str) -> str:
    """`Ahead` of a job, as JSON: for a child process."""
    job, _ = from_json(submitted)
    return _AHEAD.dump_json(_on_functions(job) if isinstance(job.ask, FunctionsTask) else _on_machines(job)).decode()


def read_ahead(text: str) -> Ahead:
    """Parse the answer of the child process."""
    return _AHEAD.validate_python(json.loads(text), strict=False)


def unknown(because: str) -> Ahead:
    """An outlook without any figures; `because`: why."""
    return Ahead(None, [], None, str(Chance.UNKNOWN), because, None, None, None)


def credentials_for(job: Job) -> list[Credentials]:
    """The credentials of each cloud that a job on SkyPilot may rent from; none for other places."""
    kind, _, named = job.on.partition(":")
    if kind != "skypilot":
        return []
    try:
        clouds = clouds_of(job, named)
    except UserError:  # the job names no cloud, and there are no credentials for any
        clouds = tuple(clouds_in(home() / "catalog"))
    return [Credentials(each.cloud, bool(each.location), each.how_to_get) for each in find_credentials(clouds)]


def _on_machines(job: Job) -> Ahead:
    planner = planner_of(job)
    place = planner.place(job)
    job = with_probe_limit(job, planner.probe_limit_usd(job, place.space))
    started = Started(job, place.space, job.on, place.provenance, VERSION)
    probes, expected = first_probes(started), outlook(job, place.space)
    first = [
        FirstProbe(str(probe.configuration), usd, seconds)
        for probe in (() if isinstance(probes, Finish) else probes)
        for seconds, usd in [place.space.worst_probe(probe.configuration)]
    ]
    prices = [each.usd_per_hour for each in expected.smallest]
    seconds, usd = expected.modelled or (None, None)
    best = str(expected.best) if expected.best is not None else None
    prices_between = (min(prices), max(prices)) if prices else None
    return Ahead(len(place.space), first, prices_between, str(expected.chance), expected.because, best, usd, seconds)


def _on_functions(job: Job) -> Ahead:
    """The outlook of a job on functions: its plan from published figures."""
    from mlcd.planners.functions.prepare import plan_ahead

    planned = plan_ahead(job)
    decision = planned.decision
    ahead = decision.forecast
    chance = "likely" if decision.configuration is not None else "unlikely"
    usd, seconds = (ahead.usd, ahead.seconds) if ahead is not None else (None, None)
    place = str(decision.configuration) if decision.configuration is not None else None
    return Ahead(None, [], None, chance, decision_sentence(decision, planned.job), place, usd, seconds)
