"""Read and profile ONNX models: their operators, the time and memory of each, and the key operators."""

from mlcd.planners.serve.operators.onnx_file import open_model
from mlcd.planners.serve.operators.onnx_profile import facts_of, key_operators, parts, profile_onnx
from mlcd.planners.serve.operators.onnx_session import example_feed

__all__ = ["example_feed", "facts_of", "key_operators", "open_model", "parts", "profile_onnx"]
