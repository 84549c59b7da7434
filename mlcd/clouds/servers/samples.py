"""Read the user's sample inputs, on which a model's outputs at two precisions are compared (`--samples`).

FILE.npz            an array for each input, by its name; the first axis counts the samples
FOLDER              the same as INPUT.npy files; or, of a model with one input, a .npy file for each sample
FILE.jsonl          a line for each sample: {"INPUT": [...], ...}; or, of a model with one input, [...] alone
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.core.errors import UserError
from mlcd.planners.serve.operators.onnx_file import OnnxModel

Arrays = dict[str, NDArray[Any]]


def read_samples(path: Path, model: OnnxModel) -> Arrays:
    """An array for each input, with a row for each sample; UserError for a mistake."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder; --samples names a .npz, a folder of .npy, or JSON Lines")
    try:
        found = _folder(path, model) if path.is_dir() else _npz(path) if path.suffix == ".npz" else _lines(path, model)
    except (OSError, ValueError, TypeError) as error:  # numpy and json raise these
        raise UserError(f"{path}: cannot be read as samples: {str(error).splitlines()[0]}") from None
    wanted = {each.name: each.dtype for each in model.inputs}
    if set(found) != set(wanted):
        names = f"{', '.join(sorted(wanted))}, not {', '.join(sorted(found)) or 'none'}"
        raise UserError(f"{path}: the model's inputs are {names}")
    counts = {len(values) if values.ndim else 0 for values in found.values()}
    if len(counts) > 1 or 0 in counts:
        raise UserError(f"{path}: every input needs as many samples as the others, and at least one")
    if model.batch is not None:
        count = counts.pop() // model.batch * model.batch  # whole passes only
        if count == 0:
            raise UserError(
                f"{path}: the model is exported for a batch of {model.batch}: give at least as many samples"
            )
        found = {name: values[:count] for name, values in found.items()}
    return {name: values.astype(wanted[name]) for name, values in found.items()}


def _npz(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _folder(path: Path, model: OnnxModel) -> Arrays:
    files = sorted(path.glob("*.npy"))
    arrays = {file.stem: np.load(file, allow_pickle=False) for file in files}
    one = model.inputs[0]
    if len(model.inputs) > 1 or set(arrays) == {one.name} or not arrays:
        return arrays
    rows = [values if values.ndim == len(one.shape) else values[None] for values in arrays.values()]
    return {one.name: np.concatenate(rows)}


def _lines(path: Path, model: OnnxModel) -> Arrays:
    written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(model.inputs) == 1:
        name = model.inputs[0].name
        written = [each if isinstance(each, dict) else {name: each} for each in written]
    if not all(isinstance(each, dict) for each in written):
        raise ValueError('expected {"INPUT": [...]} on each line')
    names = {name for each in written for name in each}
    if any(set(each) != names for each in written):
        raise ValueError("the lines do not name the same inputs")
    return {name: np.array([each[name] for each in written]) for name in names}
