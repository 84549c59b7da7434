"""Compare the outputs of the int8 model with those of the original, on the user's samples.

For a classifier (a row of numbers for each sample): the share of samples with the same top class. For other outputs:
the mean cosine similarity. For a single number per sample: one minus the relative error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlcd.clouds.servers.quantise import at_precision
from mlcd.clouds.servers.samples import read_samples
from mlcd.planners.serve.agreement import Agreement
from mlcd.planners.serve.operators import open_model
from mlcd.planners.serve.operators.onnx_session import open_session, runtime_errors

CHUNK = 16
"""Samples in one pass, if the model's batch is free."""
Arrays = Mapping[str, NDArray[Any]]


def compared(path: Path, samples: Path, least: float, cache: Path) -> Agreement:
    """Run both models on every sample; UserError if one of them cannot be run."""
    model = open_model(path)
    inputs = read_samples(samples, model)
    exact = _outputs(path, inputs, model.batch)
    rough = _outputs(at_precision(path, "int8", cache), inputs, model.batch)
    measure, share = agreement(exact, rough)
    return Agreement(share, len(exact), measure, least)


def agreement(exact: NDArray[Any], rough: NDArray[Any]) -> tuple[str, float]:
    """The measure that was used, and the agreement by it; 1 is full agreement. Arrays have a row for each sample."""
    if exact.ndim == 2 and exact.shape[1] > 1:
        return "top class", float(np.mean(exact.argmax(axis=1) == rough.argmax(axis=1)))
    flat, other = (each.reshape(len(each), -1).astype(float) for each in (exact, rough))
    if flat.shape[1] == 1:
        size = float(np.linalg.norm(flat))
        return "relative error", 1 - float(np.linalg.norm(flat - other)) / size if size else 1.0
    sizes = np.linalg.norm(flat, axis=1) * np.linalg.norm(other, axis=1)
    cosines = np.divide((flat * other).sum(axis=1), sizes, out=np.ones(len(flat)), where=sizes > 0)
    return "cosine", float(np.mean(cosines))


def _outputs(path: Path, inputs: Arrays, batch: int | None) -> NDArray[Any]:
    """The model's first output for every sample."""
    session = open_session(path)
    with runtime_errors(path):
        passes = [session.run(None, chunk)[0] for chunk in _chunks(inputs, batch or CHUNK)]
    return np.concatenate(passes)


def _chunks(inputs: Arrays, size: int) -> Iterator[dict[str, NDArray[Any]]]:
    """The samples in chunks of one pass each."""
    count = len(next(iter(inputs.values())))
    for start in range(0, count, size):
        yield {name: values[start : start + size] for name, values in inputs.items()}
