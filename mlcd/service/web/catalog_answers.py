"""Offers, learned models and examples as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from mlcd.service.web.answers import Answer


class OfferRow(Answer):
    """An instance type with both of its prices, and where and when they were read."""

    cloud: str = Field(description="The cloud that rents it.")
    instance_type: str = Field(description="Its name there.")
    region: str = Field(description="The region of the prices.")
    vcpus: float = Field(description="Virtual CPUs.")
    memory_gb: float = Field(description="Memory, in GB.")
    accelerator: str = Field(description="The kind of its GPUs; empty where it has none.")
    accelerators: int = Field(description="How many GPUs.")
    tflops_per_accelerator: float = Field(description="Tera-operations a second of one GPU.")
    accelerator_memory_gb: float = Field(description="Memory of one GPU, in GB.")
    network_gbps: float = Field(description="Network, in Gbit/s.")
    usd_per_hour: float = Field(description="Dollars an hour, on demand.")
    spot_usd_per_hour: float | None = Field(description="Dollars an hour, on spot; null where that is not known.")
    price_date: str = Field(description="When the prices were read.")
    source: str = Field(description="Where they were read.")


class Offers(Answer):
    """Some offers."""

    offers: list[OfferRow] = Field(description="The cheapest first, unless asked otherwise.")
    total: int = Field(description="How many pass the filters.")
    dated: str = Field(description="The date of the newest price.")


class UnreadableModel(Answer):
    """A file that is no model."""

    name: str = Field(description="The file's name.")
    because: str = Field(description="What is wrong with it.")


class JobFingerprint(Answer):
    """What tells two jobs apart."""

    architecture: str = Field(description="Of the model.")
    data: str = Field(description="The data that it is trained on.")
    optimizer: str = Field(description="What trains it.")


class JobIdentity(Answer):
    """The job that a model was learned from."""

    job: str = Field(description="Its name.")
    parameters: float | None = Field(description="Its parameters.")
    dataset_samples: float | None = Field(description="Samples of its data set.")
    fingerprint: JobFingerprint = Field(description="What tells it apart from others.")


class LearnedMachine(Answer):
    """An instance type that a model was learned on."""

    instance_type: str = Field(description="Its name.")
    usd_per_hour: float = Field(description="Dollars an hour of one.")
    devices: int = Field(description="Devices in one that compute.")
    cloud: str = Field(description="The cloud that rents it.")
    region: str = Field(description="Its region.")
    spot: bool = Field(description="Whether it was a spot machine.")


class LearnedTarget(Answer):
    """The metric that ended the job."""

    metric: str = Field(description="Its name.")
    value: float = Field(description="The value to reach.")
    at_least: bool = Field(description="Whether larger is better.")


class LearnedModel(Answer):
    """What an elastic run has learned of its job."""

    name: str = Field(description="What it is kept as.")
    run: str = Field(description="The run that learned it.")
    identity: JobIdentity = Field(description="The job that it was learned from.")
    machines: list[LearnedMachine] = Field(description="Where it was learned.")
    nodes: list[int] = Field(description="Numbers of machines that were asked for.")
    batches: list[int] = Field(description="Global batches that were asked for.")
    model: dict[str, Any] = Field(description="The model itself, as whoever made it reads it back.")
    provenance: str = Field(description="live, simulated or recorded.")
    target: LearnedTarget | None = Field(description="What the job was to reach.")
    epochs: float | None = Field(description="Epochs that it took to get there; null if it did not.")
    saved_at: datetime = Field(description="When it was kept.")
    version: str = Field(description="The version of MLCD that learned it.")
    format: int = Field(description="Of the file.")


class Models(Answer):
    """What elastic runs have learned."""

    models: list[LearnedModel] = Field(description="Each as its file tells it.")
    unreadable: list[UnreadableModel] = Field(description="Files that are no models.")


class KnownModel(Answer):
    """A model that was measured."""

    name: str = Field(description="Its name.")
    family: str = Field(description="The family of architectures that it is of.")
    inputs: str = Field(description="The kind of its input.")
    weights_mb: float | None = Field(description="Its weights, in 2**20 bytes.")
    parameters: float | None = Field(description="Its parameters, in billions.")
    cells: int = Field(description="Configurations that were measured.")
    operators: dict[str, float] = Field(description="The share of a pass's time, by operator.")


class KnowledgeBase(Answer):
    """Models that were measured at one place."""

    name: str = Field(description="Its name.")
    source: str = Field(description="Where it was measured.")
    models: list[KnownModel] = Field(description="The models.")


class Knowledge(Answer):
    """The knowledge bases that come with MLCD."""

    knowledge: list[KnowledgeBase] = Field(description="By name.")


class Example(Answer):
    """A job file to begin with."""

    name: str = Field(description="Its name.")
    kind: Literal["train", "tune", "scale", "serve"] = Field(description="The kind to submit it as.")
    text: str = Field(description="The file.")


class Examples(Answer):
    """Job files to begin with."""

    examples: list[Example] = Field(description="One of each kind.")
