"""MLServer: a folder of models, each with its `model-settings.json` and, for ONNX, the code that runs it.

field of MLServer     knob           meaning
max_batch_size        batch          most requests in one forward pass
max_batch_time        max_wait_ms    how long the first request of a batch waits for others, in seconds
parameters.extra      threads        threads of ONNX Runtime
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

RUNTIME = "onnx_model"
"""The code that MLServer imports from the model's folder."""
SETTINGS = {"debug": False, "parallel_workers": 0}
"""Server settings: a single process, since workers of MLServer 1.7 exit at once with uvloop 0.23 (pip's default)."""


def files(name: str, batch: int | None, wait_ms: float | None, threads: int | None) -> Mapping[str, str]:
    """The configuration files of a model, by path."""
    settings: dict[str, object] = {"name": name, "implementation": f"{RUNTIME}.OnnxModel"}
    settings |= {"max_batch_size": batch} if batch is not None else {}
    settings |= {"max_batch_time": wait_ms / 1_000} if wait_ms is not None else {}
    extra = {"threads": threads} if threads is not None else {}
    settings["parameters"] = {"uri": "./model.onnx", "extra": extra}
    return {
        "settings.json": json.dumps(SETTINGS, indent=2) + "\n",
        f"{name}/model-settings.json": json.dumps(settings, indent=2) + "\n",
        f"{name}/{RUNTIME}.py": Path(__file__).with_name(f"{RUNTIME}.py").read_text(encoding="utf-8"),
    }


def model_at(name: str) -> str:
    """The path of the model's own file."""
    return f"{name}/model.onnx"


def arguments(folder: str, ports: tuple[int, int, int]) -> list[str]:
    """Arguments of `mlserver`."""
    return ["start", folder]


def environment(ports: tuple[int, int, int]) -> Mapping[str, str]:
    """Environment variables that set its address and ports."""
    names = ("MLSERVER_HTTP_PORT", "MLSERVER_GRPC_PORT", "MLSERVER_METRICS_PORT")
    return {"MLSERVER_HOST": "127.0.0.1", **{name: str(port) for name, port in zip(names, ports, strict=True)}}
