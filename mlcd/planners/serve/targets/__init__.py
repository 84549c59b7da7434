"""Servers to deploy an ONNX model on, by the name of the export: trials run on the server that the export starts.

A trial and an export write the same files for the same settings, so that what was measured is what is deployed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlcd.planners.serve.targets import mlserver, triton


@dataclass(frozen=True)
class Target:
    """A server that is started with a folder of models.

    `server`: its name as it says it at `GET /v2`. `program`: what starts it, and `install`: how to get that.
    `files`: those of a model (its name, batch, wait in ms, threads), by their path in the folder. `model_at`: where its
    own file goes. `arguments`: of the program, with the folder and the ports of HTTP, gRPC and metrics; `environment`
    the same.
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
"""Which server runs where the answer is exported to."""
