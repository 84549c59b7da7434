"""SGLang: https://docs.sglang.io."""

from mlcd.clouds.engines.kind import EngineKind

SGLANG = EngineKind(
    name="sglang",
    program="sglang",
    package="sglang",
    install="pip install sglang",
    gauges={
        "running": "sglang:num_running_reqs",
        "waiting": "sglang:num_queue_reqs",
        "kv_cache": "sglang:token_usage",
        "preemptions": "sglang:num_retracted_reqs",
    },
)
