"""Where a job's machines are bought: spot or on demand, in which zone, hour by hour, so that the deadline is kept."""

from mlcd.planners.train.market.cost_to_go import CostToGo
from mlcd.planners.train.market.fallback import Fallback, fallback
from mlcd.planners.train.market.greedy import Greedy
from mlcd.planners.train.market.guard import Guarded, fits_now, is_safe
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.pace import Pace
from mlcd.planners.train.market.protocol import Action, Held, Kind, Policy, State, Terms
from mlcd.planners.train.market.seen import Seen, Spell, from_history
from mlcd.planners.train.market.uniform_progress import UniformProgress

__all__ = [
    "Action",
    "CostToGo",
    "Fallback",
    "Greedy",
    "Guarded",
    "Held",
    "Kind",
    "OnDemandOnly",
    "Pace",
    "Policy",
    "Seen",
    "Spell",
    "State",
    "Terms",
    "UniformProgress",
    "fallback",
    "fits_now",
    "from_history",
    "is_safe",
]
