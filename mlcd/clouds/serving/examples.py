"""The inputs of a load test: a few different samples that fit the model's file, or its server's description."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from mlcd.clouds.load.oip import Oip
from mlcd.clouds.load.oip_example import example_inputs
from mlcd.clouds.tensors import Tensors
from mlcd.core.errors import UserError
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.operators import example_feed, open_model

EXAMPLES = 8
"""Different samples in a load test."""
MOST_BYTES = 256 << 20
"""Of all samples together: there are fewer of large ones, but at least one."""


def from_file(service: ServingTask, folder: Path) -> tuple[Tensors, ...]:
    """Samples that fit the model's file. UserError if the file is not a model that can be run."""
    return _from_file(folder / service.path, tuple(service.shapes.items()))


def from_server(server: Oip, service: ServingTask, folder: Path) -> tuple[Tensors, ...]:
    """From the model's file if there is one, since it says more about the inputs. UserError if the server differs."""
    inputs = server.inputs()
    if not service.path:
        return tuple(example_inputs(inputs, service.shapes, seed) for seed in range(EXAMPLES))
    samples = from_file(service, folder)
    expected, given = {each.name for each in inputs}, set(samples[0])
    if expected and expected != given:
        names = f"{', '.join(sorted(given))}; the server's model wants {', '.join(sorted(expected))}"
        raise UserError(f"{service.path}: its inputs are {names}: is it the same model?")
    return samples


@lru_cache(maxsize=8)
def _from_file(path: Path, shapes: tuple[tuple[str, int], ...]) -> tuple[Tensors, ...]:
    model = open_model(path)
    first = example_feed(model, model.batch or 1, dict(shapes), 0)
    size_bytes = sum(each.nbytes for each in first.values())
    count = max(1, min(EXAMPLES, MOST_BYTES // max(1, size_bytes)))
    return first, *(example_feed(model, model.batch or 1, dict(shapes), seed) for seed in range(1, count))
