"""A real MLServer, in a virtual environment of its own: its fastapi pin conflicts with what else is installed here.

Made once, in some 40 seconds, at `.venv-mlserver` in the repository's root; `rm -r .venv-mlserver` makes it anew.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".venv-mlserver"
WANTED = ("mlserver>=1.7,<2", "onnxruntime")
SUMS = """
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Sums(MLModel):
    async def load(self):
        return True

    async def predict(self, request):
        x = NumpyCodec.decode_input(request.inputs[0])
        output = NumpyCodec.encode_output("sum", x.sum(axis=1, keepdims=True))
        return InferenceResponse(model_name=self.name, outputs=[output])
"""
INPUT = {"name": "x", "datatype": "FP32", "shape": [-1, -1]}


def mlserver() -> Path:
    """The command; the test is skipped where it cannot be installed."""
    command = HOME / "bin" / "mlserver"
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not (HOME / "installed-with-onnx").exists():
            pip = [str(HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "10"]
            for step in ([sys.executable, "-m", "venv", str(HOME)], [*pip, "--disable-pip-version-check", *WANTED]):
                done = subprocess.run(step, capture_output=True, text=True, check=False)
                if done.returncode:
                    why = (done.stderr or done.stdout).strip().splitlines()[-1:]
                    pytest.skip(f"MLServer cannot be installed in {HOME}: {' '.join(why)}")
            (HOME / "installed-with-onnx").touch()
    return command


def repository(folder: Path, http_port: int, grpc_port: int, metrics_port: int) -> Path:
    """A folder that MLServer serves: one model, which adds up the numbers of a row."""
    (folder / "sums").mkdir()
    (folder / "sums" / "sums.py").write_text(SUMS)
    model = {"name": "sums", "implementation": "sums.Sums", "inputs": [INPUT]}
    (folder / "sums" / "model-settings.json").write_text(json.dumps(model))
    ports = {"http_port": http_port, "grpc_port": grpc_port, "metrics_port": metrics_port}
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "debug": False, **ports}))
    return folder
