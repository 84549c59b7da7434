"""How a framework's job starts on n nodes, how its rate is read, and what its failures mean."""

from mlcd.clouds.platforms.elastic import elastic_environment, leave_file
from mlcd.clouds.platforms.failures import Diagnosis, diagnose
from mlcd.clouds.platforms.processes import Process, processes
from mlcd.clouds.platforms.reports import Reader

__all__ = ["Diagnosis", "Process", "Reader", "diagnose", "elastic_environment", "leave_file", "processes"]
