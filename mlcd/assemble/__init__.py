"""Names to objects: the one room that knows every strategy, cloud and profiler."""

from mlcd.assemble.clouds import BACKENDS, Cloud, cloud, local_backend, recorded_cloud, skypilot_cloud
from mlcd.assemble.functions import PlanAhead, boundary_of, plan_ahead
from mlcd.assemble.home import home, launches, open_ledger
from mlcd.assemble.methods import METHODS, method
from mlcd.assemble.runs import Listener, Run, decide_again, go_on, resume, start, what_if

__all__ = [
    "BACKENDS",
    "METHODS",
    "Cloud",
    "Listener",
    "PlanAhead",
    "Run",
    "boundary_of",
    "cloud",
    "decide_again",
    "go_on",
    "home",
    "launches",
    "local_backend",
    "method",
    "open_ledger",
    "plan_ahead",
    "recorded_cloud",
    "resume",
    "skypilot_cloud",
    "start",
    "what_if",
]
