"""What is trained on functions: the interfaces of a model and of its data, and both by the names of job files.

A function is stateless: it gets the parameters as one vector, and returns a gradient. SGD on the averaged gradient is
done by the exchange between functions, so a trainer knows neither the learning rate nor other functions.

A name is one of the examples of `mlcd_bench/workloads/`, or a job's own class, `module:Class` in the folder of its job
file. That module is loaded from its file under a unique name: the search path stays unchanged, and two jobs may both
have a `net.py`. While it is loaded, it can import modules beside it.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlcd.core.errors import MlcdError, UnknownName, UserError

Vector = NDArray[np.float32]
"""All parameters of a model, or their gradient, flattened."""
Features = NDArray[np.float32]
"""Samples first: (samples, *shape)."""
Labels = NDArray[np.int32]
"""One class for each sample, from 0."""
BYTES = 4
"""Of a parameter, a feature and a label."""
MODELS = {
    "lr": "mlcd_bench.workloads.linear:LogisticRegression",
    "svm": "mlcd_bench.workloads.linear:SupportVectorMachine",
    "mobilenet": "mlcd_bench.workloads.mobilenet:MobileNet",
}
DATA = {name: f"mlcd_bench.workloads.generated:{name.capitalize()}" for name in ("higgs", "yfcc", "images")}
BYTES_PER_MB = 1_000_000


class Trainer(Protocol):
    """A model that can be trained.

    Built as `Class(shape, classes, **hyperparameters)`: the shape of one sample, and the number of classes.
    `gradient` includes that of a penalty on the parameters; the losses are without the penalty, so that trials with
    different penalties can be compared. A step that is too large may give a loss of `inf` or `nan`.
    """

    @property
    def size(self) -> int:
        """How many parameters there are."""

    def initial(self, seed: int) -> Vector:
        """The initial parameters."""

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> tuple[float, Vector]:
        """The mean loss over these samples, and the mean gradient."""

    def loss(self, parameters: Vector, features: Features, labels: Labels) -> float:
        """The mean loss over these samples."""


class Dataset(Protocol):
    """An unlimited sequence of samples, numbered from 0; a job's own class is built as `Class()`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample's features."""

    @property
    def classes(self) -> int:
        """How many classes there are."""

    def rows(self, first: int, last: int, seed: int) -> tuple[Features, Labels]:
        """Samples `first` to `last` (exclusive). A sample depends only on its number and the seed."""


def trainer(model: str, data: str, folder: str = "", **hyperparameters: float) -> Trainer:
    """The model of that name, for data of that name. The learning rate is none of its hyperparameters."""
    source = dataset(data, folder)
    build = _class("model", model, folder, MODELS)
    _check_taken(model, build, hyperparameters)
    built: Trainer = _built("model", model, Trainer, lambda: build(source.shape, source.classes, **hyperparameters))
    return built


def dataset(data: str, folder: str = "") -> Dataset:
    """The data of that name."""
    build = _class("data", data, folder, DATA)
    built: Dataset = _built("data", data, Dataset, build)
    return built


def sizes_mb(model: str, data: str, samples: int, folder: str = "") -> tuple[float, float]:
    """Megabytes (1e6 bytes) of so many samples with their labels, and of the model's parameters."""
    of_sample = BYTES * (math.prod(dataset(data, folder).shape) + 1)
    return samples * of_sample / BYTES_PER_MB, trainer(model, data, folder).size * BYTES / BYTES_PER_MB


def _class(what: str, name: str, folder: str, known: Mapping[str, str]) -> Any:
    """The class of a name such as `net:Net`; `what`: for error messages."""
    if ":" not in name and name not in known:
        raise UnknownName(what, name, known)
    module_name, _, class_name = known.get(name, name).partition(":")
    if name in known:
        return getattr(import_module(module_name), class_name)
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
        built = build()
    except MlcdError:
        raise
    except Exception as error:  # whatever the user's own code does
        words = " ".join(str(error).split())
        raise UserError(f"{what} '{name}' cannot be built: {type(error).__name__}: {words}") from error
    wanted = (each for each in vars(protocol) if not each.startswith("_"))
    if missing := [each for each in wanted if not hasattr(built, each)]:
        raise UserError(
            f"{what} '{name}' lacks {', '.join(missing)}: see mlcd.planners.functions.workloads.{protocol.__name__}"
        )
    return built


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
