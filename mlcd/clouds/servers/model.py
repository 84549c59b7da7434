"""A model loaded by ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mlcd.clouds.tensors import Tensors, datatype_of
from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.serve.operators.onnx_session import runtime_errors

DATATYPES = {
    "float": "FP32",
    "double": "FP64",
    "float16": "FP16",
    "bool": "BOOL",
    "string": "BYTES",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Names of types in ONNX Runtime, and in the protocol."""


@dataclass(frozen=True)
class Port:
    """An input or an output of a model; -1 in the shape: any length."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def refuses(self, tensor: np.ndarray[Any, Any]) -> str | None:
        """Why this tensor does not fit; None if it does."""
        datatype, shape = datatype_of(tensor), tensor.shape
        fits = len(shape) == len(self.shape) and all(
            expected in (-1, side) for expected, side in zip(self.shape, shape, strict=True)
        )
        if datatype == self.datatype and fits:
            return None
        return f"input '{self.name}' is {self.datatype} {list(self.shape)}, not {datatype} {list(shape)}"


class Runs(Protocol):
    """The interface of a model that a server needs."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def run(self, inputs: Tensors) -> dict[str, np.ndarray[Any, Any]]:
        """One pass."""
        ...


class Model:
    """A model in memory; `threads` compute one pass."""

    def __init__(self, path: Path, name: str, threads: int) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtra("serving a model", "serve") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4  # errors are raised as exceptions anyway
        # Threads spin while they wait for each other, which is fast. Between two passes they must not: that would block
        # the core that reads the next request.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        with runtime_errors(path):
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.name = name
        self.inputs = tuple(_port(each) for each in self._session.get_inputs())
        self.outputs = tuple(_port(each) for each in self._session.get_outputs())

    def run(self, inputs: Tensors) -> dict[str, np.ndarray[Any, Any]]:
        """One pass."""
        names = [each.name for each in self.outputs]
        return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))


def metadata(model: Runs) -> Mapping[str, Any]:
    """The model's description in the protocol."""
    described = {
        what: [{"name": port.name, "datatype": port.datatype, "shape": list(port.shape)} for port in ports]
        for what, ports in (("inputs", model.inputs), ("outputs", model.outputs))
    }
    return {"name": model.name, "platform": "onnxruntime_onnx", **described}


def _port(node: Any) -> Port:
    inner = str(node.type).removeprefix("tensor(").removesuffix(")")
    if inner not in DATATYPES:
        raise UserError(f"'{node.name}' is a {node.type}: only tensors of numbers and texts can be served")
    shape = tuple(side if isinstance(side, int) and side >= 0 else -1 for side in node.shape)
    return Port(node.name, DATATYPES[inner], shape)
