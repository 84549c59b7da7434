"""Tuning and training on functions, as CE-scaling has evaluated it: its planners beside four baselines, modelled."""

from mlcd_bench.serverless.contest import Contest, Setting, compete
from mlcd_bench.serverless.jobs import JOBS
from mlcd_bench.serverless.limits import BUDGET
from mlcd_bench.serverless.runs import PHASES, Run, cases
from mlcd_bench.serverless.summary import BASELINES, CLAIMS, METHODS, OURS, Kept, Savings, kept, saving, savings

__all__ = [
    "BASELINES",
    "BUDGET",
    "CLAIMS",
    "JOBS",
    "METHODS",
    "OURS",
    "PHASES",
    "Contest",
    "Kept",
    "Run",
    "Savings",
    "Setting",
    "cases",
    "compete",
    "kept",
    "saving",
    "savings",
]
