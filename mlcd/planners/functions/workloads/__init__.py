"""What is trained on functions: models and data by the names that job files have for them.

MLCD's own, or a job's own classes, as `module:Class` in the folder of its job file. The module is loaded from its file
under a unique name: the search path stays unchanged, and two jobs may both have a `net.py`. While it is loaded, it can
import modules beside it.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from mlcd.core.errors import MlcdError, UnknownName, UserError
from mlcd.planners.functions.workloads.generated import Higgs, Images, Yfcc
from mlcd.planners.functions.workloads.linear import LogisticRegression, SupportVectorMachine
from mlcd.planners.functions.workloads.mobilenet import MobileNet
from mlcd.planners.functions.workloads.protocol import BYTES, Dataset, Features, Labels, Trainer, Vector, lacks

__all__ = ["DATA", "MODELS", "Dataset", "Features", "Labels", "Trainer", "Vector", "dataset", "facts", "trainer"]

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
    """The class of a name such as `net:Net`; `what`: for error messages."""
    if ":" not in name:
        raise UnknownName(what, name, known)
    module_name, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise UserError(f"{what} '{name}': write it as module:Class, such as net:Net for class Net in net.py")
    path = Path(folder or ".").resolve().joinpath(*module_name.split(".")).with_suffix(".py")
    if not path.is_file():
        raise UserError(f"{what} '{name}': there is no {path}")
    try:
        module = _module(path, path.stat().st_mtime_ns)
    except Exception as error:  # the user's own code may raise anything
        words = " ".join(str(error).split())
        raise UserError(f"{what} '{name}': {path} cannot be imported: {type(error).__name__}: {words}") from error
    if not isinstance(getattr(module, class_name, None), type):
        own = [each for each, thing in vars(module).items() if isinstance(thing, type)]
        raise UnknownName(f"class in {path}", class_name, own)
    return getattr(module, class_name)


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


@cache
def _module(path: Path, changed_ns: int) -> ModuleType:
    """Load a file once per version, so that a class is the same object in every call."""
    name = f"mlcd_job_{hashlib.sha256(f'{path}@{changed_ns}'.encode()).hexdigest()[:16]}_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        with _on_search_path(str(path.parent)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _on_search_path(folder: str) -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path[:] = before
