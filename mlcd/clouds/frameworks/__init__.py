"""Jobs of PyTorch, TensorFlow and JAX: how to start one on n nodes, read its progress and diagnose its failures."""

from mlcd.clouds.frameworks.failures import diagnose
from mlcd.clouds.frameworks.processes import Process, checkpoint_environment, processes, scaling_environment
from mlcd.clouds.frameworks.reports import OutputReader, ProgressReader

__all__ = [
    "OutputReader",
    "Process",
    "ProgressReader",
    "checkpoint_environment",
    "diagnose",
    "processes",
    "scaling_environment",
]
