"""Offers, learned models and examples as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal

from mlcd.catalog.row import CatalogRow
from mlcd.service.web.answers import Answer


class Offers(Answer):
    """Some offers; `total`: how many pass the filters."""

    offers: list[CatalogRow]
    total: int
    dated: str


class Unreadable(Answer):
    """A file that is no model."""

    name: str
    because: str


class Models(Answer):
    """What elastic runs have learned, each as its file tells it."""

    models: list[dict[str, Any]]
    unreadable: list[Unreadable]


class SeenBefore(Answer):
    """A model that was measured: how many configurations, and its operators by their share of the time."""

    name: str
    family: str
    inputs: str
    weights_mb: float | None
    parameters: float | None
    cells: int
    operators: dict[str, float]


class Base(Answer):
    """A knowledge base: where it was measured, and the models."""

    name: str
    source: str
    models: list[SeenBefore]


class Knowledge(Answer):
    """The knowledge bases that come with MLCD."""

    knowledge: list[Base]


class Example(Answer):
    """A job file, and the kind to submit it as."""

    name: str
    kind: Literal["train", "tune", "scale", "serve"]
    text: str


class Examples(Answer):
    """Job files to begin with."""

    examples: list[Example]
