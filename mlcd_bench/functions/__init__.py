"""Tuning and training on functions as in CE-scaling's evaluation: its planners against four baselines, modelled."""

from mlcd_bench.functions.contest import Contest, Setting, compete
from mlcd_bench.functions.jobs import JOBS
from mlcd_bench.functions.limits import BUDGET
from mlcd_bench.functions.runs import PHASES, Run, cases
from mlcd_bench.functions.summary import BASELINES, CLAIMS, METHODS, OURS, Kept, Savings, kept, saving, savings

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
