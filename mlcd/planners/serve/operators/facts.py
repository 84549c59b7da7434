"""Facts about a model's file before the first trial: size, family, kind of input, and profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlcd.planners.serve.nouns import ModelFacts
from mlcd.planners.serve.operators.onnx_file import OnnxModel, open_model
from mlcd.planners.serve.operators.onnx_profile import profile_onnx

BATCHES = (8, 64)
"""The batches at which models of a knowledge base were profiled."""

_RECURRENT = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"}
_GROWING = {"ConvTranspose", "Resize", "Upsample", "DepthToSpace"}
_CONVOLUTIONS = {"Conv", "ConvInteger", "QLinearConv"}


def facts_of(path: Path | str, shapes: Mapping[str, int] | None = None, batches: Sequence[int] = BATCHES) -> ModelFacts:
    """Open a model, run a few passes at each batch, and return its facts."""
    model = open_model(path)
    if model.batch is not None:
        batches = (model.batch,)
    return ModelFacts(
        name=model.path.stem,
        family=family(model),
        inputs=kind_of_input(model, shapes or {}),
        weights_mb=model.weights_mb,
        parameters=model.parameters / 1e9,
        profiles=profile_onnx(model, batches, shapes),
    )


def family(model: OnnxModel) -> str:
    """A guess from the operators: 'rnn', 'transformer', 'gan', 'recsys', 'cnn'; '' if unknown."""
    kinds = set(model.operators)
    if kinds & _RECURRENT:
        return "rnn"
    if model.attends:
        return "transformer"
    if kinds & _GROWING and _image_size(model) is None:
        return "gan"
    if kinds & _CONVOLUTIONS:
        return "cnn"
    return "recsys" if any(each.rows is not None for each in model.inputs) else ""


def kind_of_input(model: OnnxModel, shapes: Mapping[str, int]) -> str:
    """A guess from the shapes: 'image224', 'tokens128'; '' if preparing a request is trivial or unknown."""
    size = _image_size(model, shapes)
    if size is not None:
        return f"image{size}" if size else ""
    if family(model) in ("rnn", "transformer"):
        for each in model.inputs:
            if each.rows is not None and len(each.shape) == 2:
                length = each.shape[1]
                known = length if isinstance(length, int) else shapes.get(length)
                return f"tokens{known}" if known else ""
    return ""


def _image_size(model: OnnxModel, shapes: Mapping[str, int] | None = None) -> int | None:
    """The longer side of an image input (batch, channels, height, width); 0 if it is free."""
    for each in model.inputs:
        if len(each.shape) == 4 and each.rows is None:
            sides = [side if isinstance(side, int) else (shapes or {}).get(side, 0) for side in each.shape[1:]]
            channels_first = sides[0] in (1, 3, 4) or sides[-1] not in (1, 3, 4)
            longer = max(sides[1:] if channels_first else sides[:-1])
            if longer != 1:  # a generator's noise may be a 1 x 1 image
                return longer
    return None
