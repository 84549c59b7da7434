"""How a running job is measured."""

from mlcd.profilers.training import Progress, TrainingProfiler

__all__ = ["Progress", "TrainingProfiler"]
