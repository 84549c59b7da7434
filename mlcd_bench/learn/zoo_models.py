"""The ONNX models that the shipped knowledge of a CPU is measured on: five families, small, built by the zoo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mlcd_bench.learn.zoo import cnn, generator, recommender, recurrent, transformer

if TYPE_CHECKING:
    from onnx import ModelProto

ZOO: Mapping[str, Callable[[], ModelProto]] = {
    "cnn_plain_32": partial(cnn, (16, 32, 64), style="plain"),
    "cnn_plain_64_wide": partial(cnn, (32, 64, 128), style="plain", size=64),
    "cnn_residual_32": partial(cnn, (16, 32, 64), blocks=2),
    "cnn_residual_64": partial(cnn, (16, 32, 64, 128), blocks=1, size=64),
    "cnn_mobile_64": partial(cnn, (16, 32, 64, 128), style="mobile", size=64),
    "cnn_mobile_128": partial(cnn, (16, 32, 64, 128, 256), style="mobile", size=128),
    "transformer_2x64": partial(transformer, 2, 64),
    "transformer_2x128_long": partial(transformer, 2, 128, sequence=128),
    "transformer_4x128": partial(transformer, 4, 128, sequence=64, vocabulary=5_000),
    "transformer_4x256": partial(transformer, 4, 256, sequence=32, heads=8),
    "transformer_6x192": partial(transformer, 6, 192, sequence=48, vocabulary=10_000),
    "transformer_1x512": partial(transformer, 1, 512, sequence=32, heads=8),
    "lstm_2x128": partial(recurrent, "LSTM", 128, layers=2, sequence=50, vocabulary=5_000),
    "lstm_256_both_ways": partial(recurrent, "LSTM", 256, bidirectional=True, sequence=32),
    "gru_128": partial(recurrent, "GRU", 128, sequence=50),
    "gru_2x256": partial(recurrent, "GRU", 256, layers=2, sequence=24, vocabulary=10_000),
    "generator_32": partial(generator, 64, 16),
    "generator_32_wide": partial(generator, 128, 48),
    "generator_64": partial(generator, 100, 12, size=64),
    "recommender_8": partial(recommender, 8),
    "recommender_26": partial(recommender, 26, 10_000, 16, layers=(256, 128)),
    "recommender_deep": partial(recommender, 12, 5_000, 32, layers=(1024, 512, 256)),
}


def write_zoo(folder: Path) -> list[Path]:
    """Write every model that is not there yet as NAME.onnx; the paths of all."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.onnx" for name in ZOO}
    for name, path in paths.items():
        if not path.exists():
            path.write_bytes(ZOO[name]().SerializeToString())
    return list(paths.values())
