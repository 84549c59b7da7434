"""What is trained on functions: models and data by name."""

from mlcd.planners.functions.workloads.named import DATA, MODELS, dataset, facts, trainer
from mlcd.planners.functions.workloads.protocol import Dataset, Features, Labels, Trainer, Vector

__all__ = [
    "DATA",
    "MODELS",
    "Dataset",
    "Features",
    "Labels",
    "Trainer",
    "Vector",
    "dataset",
    "facts",
    "trainer",
]
