"""The part of `mlcd plan` about language models: the best training plan on each GPU type."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from mlcd.core.units import format_duration, format_usd
from mlcd.planners.train.plans.outlook import SHARE, GpuOutlook, PlanOutlook
from mlcd.planners.train.remedy import LESS_MEMORY

ENDS = ("p05", "p50", "p95")


def plans_document(plans: PlanOutlook) -> dict[str, Any]:
    """As JSON."""
    return {
        "plans": [
            {
                "gpu": each.gpu,
                "configuration": str(each.configuration),
                "instance_type": each.configuration.offer.instance_type,
                "nodes": each.configuration.nodes,
                "knobs": each.knobs,
                "seconds": dict(zip(ENDS, each.seconds, strict=True)),
                "usd": dict(zip(ENDS, each.usd, strict=True)),
                "chance_to_fit": each.chance,
            }
            for each in plans.by_gpu
        ],
        "too_small": list(plans.too_small),
    }


def print_plans(results: Console, plans: PlanOutlook) -> None:
    """Two lines for each GPU type, and what the numbers rest on."""
    goal = plans.job.goal
    if plans.by_gpu:
        results.print(f"Best plan of each GPU, {goal.objective} first, with {SHARE:.0%} intervals:")
    width = max((len(each.gpu) for each in plans.by_gpu), default=0)
    for each in plans.by_gpu:
        results.print(f"  {each.gpu:<{width}}  {each.configuration}", markup=False, highlight=False)
        over = ", over the limit" if not goal.allows(each.usd[1], each.seconds[1]) else ""
        results.print(f"  {'':<{width}}  {_figures(each)}{over}", markup=False, highlight=False)
    if plans.too_small:
        rest = f": {LESS_MEMORY}" if not plans.by_gpu else ""
        results.print(f"No plan is likely to fit into the memory of {', '.join(plans.too_small)}{rest}", markup=False)
    results.print(
        "Forecasts from datasheets and measurements of other models, not measured; training only, without start-up"
    )


def _figures(each: GpuOutlook) -> str:
    low_s, seconds, high_s = map(format_duration, each.seconds)
    low_usd, usd, high_usd = map(format_usd, each.usd)
    return f"{seconds} ({low_s} to {high_s}), {usd} ({low_usd} to {high_usd}), fits {each.chance:.0%}"
