"""TensorRT-LLM: https://nvidia.github.io/TensorRT-LLM. Its metrics are lists of steps in JSON, which are not read."""

from mlcd.clouds.engines.kind import EngineKind

TRTLLM = EngineKind(
    name="trtllm",
    program="trtllm-serve",
    package="tensorrt_llm",
    install="pip install tensorrt-llm, or NVIDIA's container of it",
)
