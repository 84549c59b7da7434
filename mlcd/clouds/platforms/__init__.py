"""How a framework's job starts on n nodes, how its rate is read, and what its failures mean."""

from mlcd.clouds.platforms.failures import diagnose
from mlcd.clouds.platforms.processes import Process, leave_file, processes, scaling_environment
from mlcd.clouds.platforms.reports import Reader

__all__ = ["Process", "Reader", "diagnose", "leave_file", "processes", "scaling_environment"]
