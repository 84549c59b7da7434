"""Small models of each family, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlcd_bench.learn import zoo

FAMILIES: dict[str, Callable[[], Any]] = {
    "cnn": zoo.cnn,
    "transformer": zoo.transformer,
    "rnn": zoo.recurrent,
    "gan": zoo.generator,
    "recsys": zoo.recommender,
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[..., Path]:
    """Writes a model, or bytes, to a file."""

    def write(model: Any, name: str = "model.onnx", **how: Any) -> Path:
        import onnx

        path = tmp_path / name
        if isinstance(model, bytes):
            path.write_bytes(model)
        else:
            onnx.save(model, str(path), **how)
        return path

    return write


@pytest.fixture
def family_file(family: str, write_model: Callable[..., Path]) -> Path:
    return write_model(FAMILIES[family](), f"{family}.onnx")
