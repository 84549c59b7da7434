"""Models and data by the names that job files have for them: MLCD's own, or `module:Class` beside the job file."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from mlcd.core.errors import MlcdError, UnknownName, UserError
from mlcd.planners.functions.workloads.generated import Higgs, Images, Yfcc
from mlcd.planners.functions.workloads.job_classes import find_class
from mlcd.planners.functions.workloads.linear import LogisticRegression, SupportVectorMachine
from mlcd.planners.functions.workloads.mobilenet import MobileNet
from mlcd.planners.functions.workloads.protocol import BYTES, Dataset, Trainer, lacks

MODELS: Mapping[str, Callable[..., Trainer]] = {
    "lr": LogisticRegression,
    "svm": SupportVectorMachine,
    "mobilenet": MobileNet,
}
DATA: Mapping[str, Callable[[], Dataset]] = {"higgs": Higgs, "yfcc": Yfcc, "images": Images}
BYTES_PER_MB = 1_000_000


def trainer(model: str, data: str, folder: str = "", **hyperparameters: float) -> Trainer:
    """The model of that name, for data of that name. The learning rate is none of its hyperparameters."""
    shown = dataset(data, folder)
    build = MODELS.get(model) or _own("model", model, folder, MODELS)
    _check_taken(model, build, hyperparameters)
    found: Trainer = _built("model", model, Trainer, lambda: build(shown.shape, shown.classes, **hyperparameters))
    return found


def dataset(data: str, folder: str = "") -> Dataset:
    """The data of that name."""
    build = DATA.get(data) or _own("data", data, folder, DATA)
    found: Dataset = _built("data", data, Dataset, build)
    return found


def facts(model: str, data: str, samples: int, folder: str = "") -> tuple[float, float]:
    """Megabytes (1e6 bytes) of so many samples with their labels, and of the model's parameters."""
    of_sample = BYTES * (math.prod(dataset(data, folder).shape) + 1)
    return samples * of_sample / BYTES_PER_MB, trainer(model, data, folder).size * BYTES / BYTES_PER_MB


def _own(what: str, name: str, folder: str, known: Mapping[str, Any]) -> Any:
    if ":" not in name:
        raise UnknownName(what, name, known)
    return find_class(what, name, folder)


def _check_taken(model: str, build: Any, hyperparameters: Mapping[str, float]) -> None:
    takes = list(inspect.signature(build).parameters.values())[2:]
    if any(each.kind is each.VAR_KEYWORD for each in takes):
        return
    for name in hyperparameters:
        if name not in {each.name for each in takes}:
            raise UnknownName(f"hyperparameter of model '{model}'", name, [each.name for each in takes])


def _built(what: str, name: str, protocol: type, build: Callable[[], Any]) -> Any:
    try:
        found = build()
    except MlcdError:
        raise
    except Exception as error:  # whatever the user's own code does
        words = " ".join(str(error).split())
        raise UserError(f"{what} '{name}' cannot be built: {type(error).__name__}: {words}") from error
    if missing := lacks(found, protocol):
        raise UserError(
            f"{what} '{name}' lacks {', '.join(missing)}: see mlcd.planners.functions.workloads.{protocol.__name__}"
        )
    return found
