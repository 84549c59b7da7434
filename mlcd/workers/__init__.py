"""Who drives the runs that people submit: a process for each, here or taken from a queue by workers elsewhere."""

from mlcd.workers.asked import from_json, to_json
from mlcd.workers.crew import Crew
from mlcd.workers.here import Here
from mlcd.workers.queue import Queue

__all__ = ["Crew", "Here", "Queue", "from_json", "to_json"]
