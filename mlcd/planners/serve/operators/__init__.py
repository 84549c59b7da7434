"""The operators of a model, their time and memory, and the key ones."""

from mlcd.planners.serve.key_operators import KEY_SHARE, Part, key_operators, parts
from mlcd.planners.serve.operators.facts import facts_of
from mlcd.planners.serve.operators.onnx_feed import example_feed
from mlcd.planners.serve.operators.onnx_file import OnnxModel, Tensor, open_model
from mlcd.planners.serve.operators.onnx_profile import profile_onnx
from mlcd.planners.serve.operators.onnx_session import open_session

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
