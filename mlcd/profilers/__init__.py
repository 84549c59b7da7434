"""How a running job is measured."""

from mlcd.profilers.training import TrainingProfiler

__all__ = ["TrainingProfiler"]
