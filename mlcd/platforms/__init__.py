"""How a framework's job starts on n nodes, how its rate is read, and what its failures mean."""

from mlcd.platforms.elastic import elastic_environment, leave_file
from mlcd.platforms.failures import Diagnosis, diagnose
from mlcd.platforms.processes import Process, processes
from mlcd.platforms.reports import Reader

__all__ = ["Diagnosis", "Process", "Reader", "diagnose", "elastic_environment", "leave_file", "processes"]
