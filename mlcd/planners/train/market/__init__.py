"""Where a job's machines are rented while it runs: spot or on demand, in which zone, so that the deadline is met."""

from mlcd.planners.train.market.cost_to_go import CostToGo
from mlcd.planners.train.market.fallback import Fallback, estimate_fallback
from mlcd.planners.train.market.greedy import Greedy
from mlcd.planners.train.market.guard import Guarded, fits_on_demand_now, is_safe
from mlcd.planners.train.market.observations import Observations, Spell, observations_from_table
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.pace import Pace
from mlcd.planners.train.market.protocol import Action, HeldMachines, Kind, Policy, State, Terms
from mlcd.planners.train.market.uniform_progress import UniformProgress

__all__ = [
    "Action",
    "CostToGo",
    "Fallback",
    "Greedy",
    "Guarded",
    "HeldMachines",
    "Kind",
    "Observations",
    "OnDemandOnly",
    "Pace",
    "Policy",
    "Spell",
    "State",
    "Terms",
    "UniformProgress",
    "estimate_fallback",
    "fits_on_demand_now",
    "is_safe",
    "observations_from_table",
]
