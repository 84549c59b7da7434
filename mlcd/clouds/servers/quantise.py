"""Provide a model at the requested precision: quantised to int8 and cached under the hash of its source.

Also a program: `python -m mlcd.clouds.servers.quantise MODEL FOLDER` prints the path of the int8 model.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mlcd.core.errors import MissingExtra, UserError
from mlcd.planners.serve.operators.onnx_graph import external_files


def at_precision(model: Path, precision: str, folder: Path) -> Path:
    """The file to serve; a quantised one is cached in the folder. UserError if the model cannot be quantised.

    Quantising runs in a separate process: it takes more memory than serving, and would count as the server's peak.
    """
    if precision == "fp32":
        return model
    command = [sys.executable, "-m", "mlcd.clouds.servers.quantise", str(model), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError((done.stderr.strip() or f"quantising ended with status {done.returncode}").splitlines()[-1])
    return Path(done.stdout.strip().splitlines()[-1])


QUANTISED = ("Integer", "DynamicQuantize", "QLinear", "DequantizeLinear")
"""Substrings of the names of int8 operators."""


def quantise(model: Path, folder: Path) -> Path:
    """The int8 model: weights quantised now, activations at run time (ONNX Runtime's dynamic quantisation)."""
    try:
        import onnx
        import onnxruntime
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        raise MissingExtra("quantising a model", "serve") from None
    target = folder / f"{model.stem}-{_hash(model, onnxruntime.__version__)}.int8.onnx"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / "model.onnx"
        try:
            with contextlib.redirect_stdout(sys.stderr):
                quantize_dynamic(model, fresh, weight_type=QuantType.QInt8)
            kinds = {node.op_type for node in onnx.load(fresh, load_external_data=False).graph.node}
            onnxruntime.InferenceSession(fresh, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnx and its runtime raise many types; the user needs one line
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UserError(f"{model}: cannot be quantised to int8 ({why}): leave int8 out of `precision`") from error
        if not any(part in kind for part in QUANTISED for kind in kinds):
            raise UserError(f"{model}: has no operator that int8 speeds up: leave int8 out of `precision`")
        os.replace(fresh, target)
    return target


def _hash(model: Path, version: str) -> str:
    """The hash of the model's file, its external weights, and the version of ONNX Runtime."""
    import onnx

    digest = hashlib.sha256(version.encode())
    external = external_files(onnx.load(model, load_external_data=False).graph)
    for path in (model, *(model.parent / name for name in sorted(external))):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    try:
        print(quantise(Path(sys.argv[1]), Path(sys.argv[2])))
    except (UserError, MissingExtra) as error:
        sys.exit(str(error))
    except Exception as error:  # every error becomes one line for the parent process
        sys.exit(f"{sys.argv[1]}: cannot be read as an ONNX model ({type(error).__name__})")
