"""The catalog of offers, learned models, knowledge bases, and example job files."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path as Folder
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from mlcd.catalog import OfferRow, offered_rows, select
from mlcd.core.part import Part, part_fields
from mlcd.memory.models import ModelStore, learned_models
from mlcd.planners.serve.known_models import SeenModel, knowledge_bases
from mlcd.service.web.errors import error_responses, unknown_is_404
from mlcd.service.web.identity import Admin, Viewer, audited
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["catalog"])
ModelName = Annotated[str, Path(description="The model's name.")]
KINDS = {"train": "train", "scale": "scale", "tune": "tune", "functions": "train", "knobs": "serve"}
"""The kind of each example."""


class Offers(Part):
    """Some offers."""

    offers: list[OfferRow] = Field(description="The cheapest first, unless asked otherwise.")
    total: int = Field(description="How many pass the filters.")
    dated: str = Field(description="The date of the newest price.")


class UnreadableModel(Part):
    """A file that cannot be read as a model."""

    name: str = Field(description="The file's name.")
    because: str = Field(description="What is wrong with it.")


class JobFingerprint(Part):
    """What identifies a job: runs with the same fingerprint can reuse a model."""

    architecture: str = Field(description="The model's architecture.")
    data: str = Field(description="The training data.")
    optimizer: str = Field(description="The optimizer.")


class JobIdentity(Part):
    """The job that a model was learned from."""

    job: str = Field(description="Its name.")
    parameters: float | None = Field(description="Parameters of the model that it trains.")
    dataset_samples: float | None = Field(description="Samples in its data set.")
    fingerprint: JobFingerprint = Field(description="What identifies the job.")


class LearnedMachine(Part):
    """An instance type that a model was learned on."""

    instance_type: str = Field(description="Its name.")
    usd_per_hour: float = Field(description="Dollars an hour of one.")
    devices: int = Field(description="Compute devices in one machine.")
    cloud: str = Field(description="The cloud.")
    region: str = Field(description="Its region.")
    spot: bool = Field(description="Whether it was a spot machine.")


class LearnedTarget(Part):
    """The metric that ended the job."""

    metric: str = Field(description="Its name.")
    value: float = Field(description="The value to reach.")
    at_least: bool = Field(description="Whether larger is better.")


class LearnedModel(Part):
    """A model of its job that an elastic run has learned."""

    name: str = Field(description="The name that it is stored under.")
    run: str = Field(description="The run that learned it.")
    identity: JobIdentity = Field(description="The job that it was learned from.")
    machines: list[LearnedMachine] = Field(description="The machines that it was learned on.")
    nodes: list[int] = Field(description="Numbers of machines in the search space.")
    batches: list[int] = Field(description="Global batch sizes in the search space.")
    model: dict[str, Any] = Field(description="The parameters of the model, in its planner's format.")
    provenance: str = Field(description="live, simulated or recorded.")
    target: LearnedTarget | None = Field(description="The job's target.")
    epochs: float | None = Field(description="Epochs until the target; null if it was not reached.")
    saved_at: datetime = Field(description="When it was stored.")
    version: str = Field(description="The version of MLCD that learned it.")
    format: int = Field(description="The version of the file format.")


class Models(Part):
    """What elastic runs have learned."""

    models: list[LearnedModel] = Field(description="The models.")
    unreadable: list[UnreadableModel] = Field(description="Files that cannot be read.")


class KnownModel(Part):
    """A model that was measured."""

    name: str = Field(description="Its name.")
    family: str = Field(description="Its family of architectures.")
    inputs: str = Field(description="The kind of its input.")
    weights_mb: float | None = Field(description="Its weights, in 2**20 bytes.")
    parameters: float | None = Field(description="Its parameters, in billions.")
    cells: int = Field(description="Measured configurations.")
    operators: dict[str, float] = Field(description="The share of a forward pass's time, by operator.")


class KnowledgeBase(Part):
    """Models that were measured at one place."""

    name: str = Field(description="Its name.")
    source: str = Field(description="Where it was measured.")
    models: list[KnownModel] = Field(description="The models.")


class Knowledge(Part):
    """The knowledge bases that come with MLCD."""

    knowledge: list[KnowledgeBase] = Field(description="By name.")


class Example(Part):
    """A job file to begin with."""

    name: str = Field(description="Its name.")
    kind: Literal["train", "tune", "scale", "serve"] = Field(description="The kind to submit it as.")
    text: str = Field(description="The file.")


class Examples(Part):
    """Job files to begin with."""

    examples: list[Example] = Field(description="One of each kind.")


@router.get("/offers", summary="What can be rented, the cheapest first", responses=error_responses(422))
async def offers(
    state: CurrentState,
    who: Viewer,
    gpu: Annotated[str | None, Query(max_length=60, description="A GPU, such as A100, or A100:8.")] = None,
    max_price: Annotated[float | None, Query(gt=0, allow_inf_nan=False, description="Dollars an hour at most.")] = None,
    cloud: Annotated[str | None, Query(max_length=60, description="aws, gcp or azure.")] = None,
    text: Annotated[str | None, Query(max_length=60, description="A part of the type's or the GPU's name.")] = None,
    sort: Annotated[str, Query(max_length=40, description="price, memory, gpus or tflops-per-dollar.")] = "price",
    limit: Annotated[int, Query(ge=1, le=5_000, description="The most offers to return.")] = 200,
) -> Offers:
    """The catalog that searches use."""
    folder = state.settings.home / "catalog"
    rows = await asyncio.to_thread(_rows, folder, folder.stat().st_mtime if folder.is_dir() else 0.0)
    pattern = (text or "").lower()
    selected = select(rows, gpu=gpu or None, max_price=max_price, cloud=cloud or None, sort=sort)
    selected = [row for row in selected if pattern in f"{row.instance_type} {row.accelerator}".lower()]
    dated = max((row.price_date for row in rows), default="")
    return Offers(offers=selected[:limit], total=len(selected), dated=dated)


@router.get("/models", summary="What elastic runs have learned", responses=error_responses())
async def models(state: CurrentState, who: Viewer) -> Models:
    """What `mlcd models -o json` prints."""
    stored, broken = await asyncio.to_thread(_shelf(state).all)
    models = [LearnedModel.model_validate(each) for each in stored.values()]
    return Models(models=models, unreadable=[UnreadableModel.model_validate(each) for each in broken])


@router.delete("/models/{name}", status_code=204, summary="Forget one of them", responses=error_responses(404))
def forget_model(name: ModelName, state: CurrentState, who: Admin) -> Response:
    """Later searches do not use it any more; runs do not change."""
    with audited(state, who, "forget model", name), unknown_is_404():
        _shelf(state).forget(name)
    return Response(status_code=204)


@router.get("/knowledge", summary="Models that were served before", responses=error_responses())
async def knowledge(state: CurrentState, who: Viewer) -> Knowledge:
    """The knowledge that a search for a new model's configuration starts from."""
    return await asyncio.to_thread(_knowledge)


@router.get("/examples", summary="Job files to begin with", responses=error_responses())
async def examples(state: CurrentState, who: Viewer) -> Examples:
    """Each runs unchanged on a simulated cloud; `knobs` lists what may vary when a model is served."""
    read = ({"name": name, "kind": KINDS[name], "text": text} for name, text in _examples().items())
    return Examples(examples=[Example.model_validate(each) for each in read])


@lru_cache(maxsize=2)
def _rows(folder: Folder, changed: float) -> list[OfferRow]:
    """All offers. Cached until a price list is fetched, which changes the folder's time `changed`."""
    return offered_rows(folder)


def _shelf(state: State) -> ModelStore:
    return learned_models(state.database, state.settings.home / "models")


@cache
def _knowledge() -> Knowledge:
    bases = []
    for name, base in knowledge_bases().all()[0].items():
        bases.append(KnowledgeBase(name=name, source=base.source, models=[_known_model(each) for each in base.models]))
    return Knowledge(knowledge=bases)


def _known_model(model: SeenModel) -> KnownModel:
    shares = dict(model.facts.profiles[0].shares) if model.facts.profiles else {}
    operators = dict(sorted(shares.items(), key=lambda each: -each[1]))
    return KnownModel(**part_fields(KnownModel, model.facts, cells=len(model.cells), operators=operators))


@cache
def _examples() -> Mapping[str, str]:
    folder = files("mlcd.service.web").joinpath("examples")
    return {name: folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8") for name in KINDS}
