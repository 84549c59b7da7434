"""Deployment targets for ONNX models (`--target`): trials run on the server that the export of that name starts.

Trials and exports write the same files for the same settings, so the measured configuration is the deployed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlcd.planners.serve.targets import mlserver, triton


@dataclass(frozen=True)
class Target:
    """A server that is started with a folder of models.

    `server`: its name in the answer of `GET /v2`. `program`: the executable that starts it; `install`: how to get it.
    `files`: the configuration files by path, from a model's name, batch, wait in ms and threads. `model_at`: the path
    of the model's own file, from its name. `arguments`, `environment`: of the program, from the folder and the ports
    of HTTP, gRPC and metrics.
    """

    server: str
    program: str
    install: str
    files: Callable[[str, int, float, int], Mapping[str, str]]
    model_at: Callable[[str], str]
    arguments: Callable[[str, tuple[int, int, int]], list[str]]
    environment: Callable[[tuple[int, int, int]], Mapping[str, str]] = lambda ports: {}


MLSERVER = Target(
    "mlserver",
    "mlserver",
    "pip install mlserver onnxruntime, and its bin folder on PATH",
    mlserver.files,
    mlserver.model_at,
    mlserver.arguments,
    mlserver.environment,
)
TRITON = Target(
    "triton",
    "tritonserver",
    "run MLCD in a container of Triton's image, or install Triton",
    triton.files,
    triton.model_at,
    triton.arguments,
)
TARGETS: Mapping[str, Target] = {"mlserver": MLSERVER, "triton": TRITON, "kserve": TRITON, "compose": TRITON}
"""The server of each export target."""
