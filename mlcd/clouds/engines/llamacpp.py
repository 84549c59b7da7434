"""llama.cpp: https://github.com/ggml-org/llama.cpp. The model is a GGUF file, which determines the precision."""

from mlcd.clouds.engines.kind import EngineKind

LLAMA_CPP = EngineKind(
    name="llama.cpp",
    program="llama-server",
    package="",
    install="a release of github.com/ggml-org/llama.cpp",
    gauges={
        "running": "llamacpp:requests_processing",
        "waiting": "llamacpp:requests_deferred",
        "kv_cache": "llamacpp:kv_cache_usage_ratio",
    },
)
