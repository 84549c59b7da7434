"""How a running job is measured."""

from mlcd.profilers.functions import FunctionsProfiler
from mlcd.profilers.progress import Progress
from mlcd.profilers.serving import ServingProfiler
from mlcd.profilers.training import TrainingProfiler

__all__ = ["FunctionsProfiler", "Progress", "ServingProfiler", "TrainingProfiler"]
