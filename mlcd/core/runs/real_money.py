"""Where a run is billed in real dollars, and what it may spend there: what is said before it begins."""

from __future__ import annotations

from math import inf

from mlcd.core.guarantee import within_price_limits
from mlcd.core.job import Job
from mlcd.core.ledger import Started
from mlcd.core.runs.run import first_probes
from mlcd.core.strategy import Finish
from mlcd.core.units import counted, format_duration, format_usd

FREE_PLACES = ("", "simulated", "recorded", "market", "local", "ray")
"""Places that nobody sends a bill for. Of any other, one of another package among them, nobody here can know."""
FUNCTIONS = "functions"
FREE_FUNCTION_PLATFORMS = ("", "simulated", "localhost")
"""Platforms of functions that nobody sends a bill for: this machine, and one that is made up."""


def costs_real_money(on: str) -> bool:
    """Whether somebody sends a bill for what is launched there. Prices of one's own machines are made up."""
    kind, _, platform = on.partition(":")
    return kind not in FREE_PLACES if kind != FUNCTIONS else platform not in FREE_FUNCTION_PLATFORMS


def real_money_text(first: Started) -> str:
    """What a run would do first, its price, and the most that it can spend: a line for each."""
    return "\n".join([*_first_probes_text(first), spending_limit_text(first.job), *_unlimited_text(first)])


def spending_limit_text(job: Job) -> str:
    """The most that it can spend, and whether traffic is in that: a line each."""
    return f"{_total_text(job)}\n{traffic_text(job)}"


def traffic_text(job: Job) -> str:
    """Whether what leaves the cloud's region is in the limit and in the prices: nobody here can measure it."""
    if job.on.partition(":")[0] == FUNCTIONS:
        return "Not counted: traffic out of a region."
    counted = []
    if job.egress_gb:
        counted.append(f"{job.egress_gb:,.4g} GB of traffic out of the region for each launch (egress)")
    if job.checkpoint_gb and job.search.zones:
        counted.append(f"{job.checkpoint_gb:,.4g} GB for each move to another region (checkpoint_size)")
    said = [f"Counted: {' and '.join(counted)}."] if counted else []
    unsaid = "Not counted: traffic out of a region, unless the job file says how much (egress)."
    return " ".join(said if job.egress_gb else [*said, unsaid])


def _total_text(job: Job) -> str:
    """'It rents on skypilot for real money, up to $20.00, the budget, for probes and the final run together.'"""
    budget_usd, max_probe_usd = job.goal.budget_usd, job.search.max_probe_usd
    dearest = inf if max_probe_usd is None else max_probe_usd
    each = f"; on one probe up to {format_usd(dearest)}" if dearest < (budget_usd or inf) else ""
    if budget_usd is not None:
        total = f"up to {format_usd(budget_usd)}, the budget, for probes and the final run together"
        return f"It rents on {job.on} for real money, {total}{each}."
    limits = "no budget" if job.goal.deadline_s is not None else "no budget and no deadline"
    return f"It rents on {job.on} for real money, and there is {limits}: nothing bounds the total{each}."


def _first_probes_text(first: Started) -> list[str]:
    probes = first_probes(first)
    if isinstance(probes, Finish):
        return [f"Nothing would be probed: {probes.because}."]
    lines, total_usd = [], 0.0
    for probe in probes:
        seconds, usd = first.space.worst_probe(probe.configuration)
        lines.append(f"First probe: {probe.configuration}, at most {format_usd(usd)} and {format_duration(seconds)}.")
        total_usd += usd
    return lines if len(lines) == 1 else [*lines, f"All {len(lines)} at once: at most {format_usd(total_usd)}."]


def _unlimited_text(first: Started) -> list[str]:
    """Without a budget: what a search that left nothing out would cost."""
    if first.job.goal.budget_usd is not None:
        return []
    allowed = within_price_limits(first.job.search, first.space)
    usd, many = float(first.space.probe_usd[allowed].sum()), int(allowed.sum())
    worst = f"Probing each of {counted(many, 'configuration')} that may be probed would cost up to {format_usd(usd)}"
    return [f"{worst}. A limit on the whole: --budget."]
