"""How a framework's job starts on n nodes, how its rate is read, and what its failures mean."""

from mlcd.clouds.frameworks.failures import diagnose
from mlcd.clouds.frameworks.processes import Process, checkpoint_environment, processes, scaling_environment
from mlcd.clouds.frameworks.reports import Reader, Reads

__all__ = ["Process", "Reader", "Reads", "checkpoint_environment", "diagnose", "processes", "scaling_environment"]
