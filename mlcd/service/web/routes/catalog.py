"""Offers, what earlier runs have learned, models that were measured before, and example job files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path as Folder
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response

from mlcd.catalog import CLOUDS, CatalogRow, load_rows, select
from mlcd.memory.models import ModelShelf, learned_models
from mlcd.planners.serve.known_models import SeenModel, knowledge_bases
from mlcd.service.web.answers import problems
from mlcd.service.web.catalog_answers import (
    Example,
    Examples,
    Knowledge,
    KnowledgeBase,
    KnownModel,
    LearnedModel,
    Models,
    OfferRow,
    Offers,
    UnreadableModel,
)
from mlcd.service.web.failures import unknown_is_404
from mlcd.service.web.identity import Admin, Viewer, audited
from mlcd.service.web.state import CurrentState, State

router = APIRouter(tags=["catalog"])
KINDS: dict[str, Literal["train", "scale", "tune", "serve"]] = {
    "train": "train",
    "scale": "scale",
    "tune": "tune",
    "functions": "train",
    "knobs": "serve",
}
"""The kind of each example."""


@router.get("/offers", summary="What can be rented, the cheapest first", responses=problems(422))
async def offers(
    state: CurrentState,
    who: Viewer,
    gpu: Annotated[str | None, Query(max_length=60, description="A GPU, such as A100, or A100:8.")] = None,
    max_price: Annotated[float | None, Query(gt=0, allow_inf_nan=False, description="Dollars an hour at most.")] = None,
    cloud: Annotated[str | None, Query(max_length=60, description="aws, gcp or azure.")] = None,
    text: Annotated[str | None, Query(max_length=60, description="A part of the type's or the GPU's name.")] = None,
    sort: Annotated[str, Query(max_length=40, description="price, memory, gpus or tflops-per-dollar.")] = "price",
    limit: Annotated[int, Query(ge=1, le=5_000, description="Offers at the most.")] = 200,
) -> Offers:
    """The catalog that searches use."""
    rows = await asyncio.to_thread(_rows, state.settings.home / "catalog")
    offers_found = select(rows, gpu=gpu or None, max_price=max_price, cloud=cloud or None, sort=sort)
    pattern = (text or "").lower()
    offers_found = [row for row in offers_found if pattern in f"{row.instance_type} {row.accelerator}".lower()]
    dated = max((row.price_date for row in rows), default="")
    return Offers(
        offers=[OfferRow.model_validate(row) for row in offers_found[:limit]], total=len(offers_found), dated=dated
    )


@router.get("/models", summary="What elastic runs have learned", responses=problems())
async def models(state: CurrentState, who: Viewer) -> Models:
    """What `mlcd models -o json` prints."""
    stored, broken = await asyncio.to_thread(_shelf(state).all)
    return Models(
        models=[LearnedModel.model_validate(each) for each in stored.values()],
        unreadable=[UnreadableModel.model_validate(each) for each in broken],
    )


@router.delete("/models/{name}", status_code=204, summary="Forget one of them", responses=problems(404))
def forget_model(
    name: Annotated[str, Path(description="The model's name.")], state: CurrentState, who: Admin
) -> Response:
    """Searches do not use it any more; the runs do not change."""
    with audited(state, who, "forget model", name), unknown_is_404():
        _shelf(state).forget(name)
    return Response(status_code=204)


@router.get("/knowledge", summary="Models that were served before", responses=problems())
async def knowledge(state: CurrentState, who: Viewer) -> Knowledge:
    """The knowledge that a search for a new model's configuration starts from."""
    return await asyncio.to_thread(_knowledge)


@router.get("/examples", summary="Job files to begin with", responses=problems())
async def examples(state: CurrentState, who: Viewer) -> Examples:
    """Each runs unchanged on a simulated cloud; `knobs` lists what may vary when a model is served."""
    return Examples(examples=[Example(name=name, kind=KINDS[name], text=text) for name, text in _examples().items()])


_CATALOGS: dict[Folder, tuple[float, list[CatalogRow]]] = {}


def _rows(directory: Folder) -> list[CatalogRow]:
    """All rows; read again after a price list was fetched."""
    changed = directory.stat().st_mtime if directory.is_dir() else 0.0
    if directory not in _CATALOGS or _CATALOGS[directory][0] != changed:
        _CATALOGS[directory] = changed, [row for name in CLOUDS for row in load_rows(name, directory=directory)]
    return _CATALOGS[directory][1]


def _shelf(state: State) -> ModelShelf:
    return learned_models(state.database, state.settings.home / "models")


@cache
def _knowledge() -> Knowledge:
    return Knowledge(
        knowledge=[
            KnowledgeBase(name=name, source=base.source, models=[_seen(model) for model in base.models])
            for name, base in knowledge_bases().all()[0].items()
        ]
    )


def _seen(model: SeenModel) -> KnownModel:
    facts = model.facts
    shares = dict(facts.profiles[0].shares) if facts.profiles else {}
    return KnownModel(
        name=facts.name,
        family=facts.family,
        inputs=facts.inputs,
        weights_mb=facts.weights_mb,
        parameters=facts.parameters,
        cells=len(model.cells),
        operators=dict(sorted(shares.items(), key=lambda each: -each[1])),
    )


@cache
def _examples() -> Mapping[str, str]:
    folder = files("mlcd.service.web").joinpath("examples")
    return {name: folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8") for name in KINDS}
