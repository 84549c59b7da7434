"""How a framework's job starts on n nodes, how its rate is read, and what its failures mean."""

from mlcd.clouds.platforms.failures import Diagnosis, diagnose
from mlcd.clouds.platforms.processes import Process, processes
from mlcd.clouds.platforms.reports import Reader
from mlcd.clouds.platforms.scaling import leave_file, scaling_environment

__all__ = ["Diagnosis", "Process", "Reader", "diagnose", "leave_file", "processes", "scaling_environment"]
