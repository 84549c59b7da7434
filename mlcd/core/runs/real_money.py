"""Whether a run costs real money, and the text that tells the user what it may spend before it begins."""

from __future__ import annotations

from math import inf

from mlcd.core.guarantee import within_price_limits
from mlcd.core.job import Job
from mlcd.core.ledger import Started
from mlcd.core.runs.run import first_probes
from mlcd.core.strategy import Finish
from mlcd.core.units import counted, format_duration, format_usd

FREE_PLACES = ("", "simulated", "recorded", "market", "local", "ray")
"""Places that cost no money. All others, such as those of other packages, count as if they did."""
FUNCTIONS = "functions"
FREE_FUNCTION_PLATFORMS = ("", "simulated", "localhost")
"""Platforms of functions that cost no money: this machine, and the simulated one."""


def costs_real_money(on: str) -> bool:
    """Whether launches at this place are billed in real dollars."""
    kind, _, platform = on.partition(":")
    return kind not in FREE_PLACES if kind != FUNCTIONS else platform not in FREE_FUNCTION_PLATFORMS


def real_money_text(first: Started) -> str:
    """The first probes of a run, their price, and the most that the run can spend, one line each."""
    return "\n".join([*_first_probes_text(first), spending_limit_text(first.job), *_unlimited_text(first)])


def spending_limit_text(job: Job) -> str:
    """The most that a run can spend, and whether that includes traffic, one line each."""
    return f"{_total_text(job)}\n{traffic_text(job)}"


def traffic_text(job: Job) -> str:
    """Which traffic out of the cloud's region the limits include: MLCD cannot measure it."""
    if job.on.partition(":")[0] == FUNCTIONS:
        return "Not counted: traffic out of a region."
    counted = []
    if job.egress_gb:
        counted.append(f"{job.egress_gb:,.4g} GB of traffic out of the region for each launch (egress)")
    if job.checkpoint_gb and job.search.zones:
        counted.append(f"{job.checkpoint_gb:,.4g} GB for each move to another region (checkpoint_size)")
    included = [f"Counted: {' and '.join(counted)}."] if counted else []
    missing = "Not counted: traffic out of a region, unless the job file says how much (egress)."
    return " ".join(included if job.egress_gb else [*included, missing])


def _total_text(job: Job) -> str:
    """'It rents on skypilot for real money, up to $20.00, the budget, for probes and the final run together.'"""
    budget_usd, max_probe_usd = job.goal.budget_usd, job.search.max_probe_usd
    most_usd = inf if max_probe_usd is None else max_probe_usd
    each = f"; on one probe up to {format_usd(most_usd)}" if most_usd < (budget_usd or inf) else ""
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
    """Without a budget: the cost of probing every configuration."""
    if first.job.goal.budget_usd is not None:
        return []
    allowed = within_price_limits(first.job.search, first.space)
    usd, many = float(first.space.probe_usd[allowed].sum()), int(allowed.sum())
    worst = f"Probing each of {counted(many, 'configuration')} that may be probed would cost up to {format_usd(usd)}"
    return [f"{worst}. A limit on the whole: --budget."]
