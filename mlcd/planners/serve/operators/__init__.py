"""The operators of a model, their time and memory, and the key ones."""

from mlcd.planners.serve.operators.onnx_file import OnnxModel, Tensor, open_model
from mlcd.planners.serve.operators.onnx_profile import KEY_SHARE, Part, facts_of, key_operators, parts, profile_onnx
from mlcd.planners.serve.operators.onnx_session import example_feed, open_session

__all__ = [
    "KEY_SHARE",
    "OnnxModel",
    "Part",
    "Tensor",
    "example_feed",
    "facts_of",
    "key_operators",
    "open_model",
    "open_session",
    "parts",
    "profile_onnx",
]
