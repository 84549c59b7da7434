"""The options of `mlcd serve` that cap a latency figure, and the defaults of the others."""

from collections.abc import Iterable

from mlcd.core.errors import UserError

CAPS = {
    "latency_p50": ("p50", "median latency"),
    "latency_p95": ("p95", "95th percentile of the latency"),
    "latency_p99": ("p99", "99th percentile of the latency"),
    "ttft_p50": ("ttft_p50", "median time to the first token"),
    "ttft_p95": ("ttft_p95", "95th percentile of the time to the first token"),
    "tpot_p50": ("tpot_p50", "median time per token after the first"),
    "tpot_p95": ("tpot_p95", "95th percentile of the time per token after the first"),
    "itl_p50": ("itl_p50", "median time between two tokens"),
    "itl_p95": ("itl_p95", "95th percentile of the time between two tokens"),
}
"""Each option that caps a figure: the figure, and its meaning in words."""


def check_figures(model: str, asked: Iterable[str], measured: Iterable[str]) -> None:
    """Refuse a cap on a figure that trials of this model do not measure."""
    options = {figure: f"--{name.replace('_', '-')}" for name, (figure, _) in CAPS.items()}
    can = set(measured)
    for figure in asked:
        if figure not in can:
            *first, last = [option for each, option in options.items() if each in can] or ["no cap"]
            known = f"{', '.join(first)} or {last}" if first else last
            raise UserError(f"{options[figure]}: trials of {model} do not measure this; use {known}")


SERVICE_NAMES = (*CAPS, "min_rps")
SERVERS = ("mlserver", "triton", "kserve", "compose")
"""Export targets whose server can also run the trials: see `targets`."""
MIN_AGREEMENT = 0.99
"""Least agreement of int8 with fp32: MLPerf Inference asks quantised models for 99 % of the reference's accuracy."""
METHOD, TRIALS, WHERE = "grey-box", 10, "local"
"""Defaults of --method, --trials and --on."""
LANGUAGE = ("engine", "endpoint", "input_tokens", "output_tokens", "prompts", "shared_prefix", "sweep", "price")
"""Options that apply to language models only."""
