"""The jobs of CE-scaling's evaluation, by their sizes.

Wu et al. (CE-scaling, IPDPS 2023), section IV-A and table IV: samples, size of the model, batch of a function, learning
rate and target loss are the paper's. Where it is silent the number is ours: 4 million samples of YFCC100M, as many as
LambdaML trains on (from memory); a megabyte is a million bytes; a feature, a label and a word take 4 bytes, a pixel
takes 3 and the label of an image 1. The paper gives the target of YFCC as 50, which is impossible for a mean loss of a
sample; ours is 0.5, and only the scale of the simulated losses depends on it. The paper does not state the epochs of a
job to its target, either; ours are 20 to 50. In the model, SVM and LR on the same data differ in nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.epoch_model.published import published
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.functions.tariff import load_tariff
from mlcd.planners.functions.workload import Workload

MB = 1e6


@dataclass(frozen=True)
class BenchJob:
    """The job to tune or train. `epochs`: to the target, apart from noise; no method knows them."""

    name: str
    workload: Workload
    target_loss: float
    epochs: int

    @property
    def model(self) -> EpochModel:
        """Time and cost of an epoch on AWS, modelled from published constants and list prices; not measured."""
        tariff = load_tariff("aws", model_mb=self.workload.model_mb)
        return EpochModel(self.workload, tariff, published(self.workload))

    @property
    def serverless(self) -> FunctionsTask:
        """The whole space of allocations: 3,000 functions, 10,240 MB, four storages; all trials may run at once."""
        return FunctionsTask(self.workload, tariff=self.model.tariff)

    @property
    def sizes(self) -> dict[str, float]:
        """Its sizes, for the output."""
        work = self.workload
        return {
            "samples": work.samples,
            "data_mb": work.data_mb,
            "model_mb": work.model_mb,
            "batch": work.batch,
            "target_loss": self.target_loss,
            "epochs": self.epochs,
        }


def _table(model: str, data: str, samples: int, features: int, batch: int) -> Workload:
    """A linear model on rows of numbers: a weight for each feature, and one more."""
    row, weights = 4 * (features + 1), 4 * (features + 1)
    return Workload(model, data, samples, samples * row / MB, weights / MB, batch)


_CIFAR10_MB = 60_000 * (3 * 32 * 32 + 1) / MB
_IMDB_MB = 25_000 * 292 * 4 / MB

JOBS = {
    job.name: job
    for job in (
        BenchJob("lr-higgs", _table("lr", "higgs", 11_000_000, 28, 10_000), 0.66, 40),
        BenchJob("svm-higgs", _table("svm", "higgs", 11_000_000, 28, 10_000), 0.48, 30),
        BenchJob("lr-yfcc", _table("lr", "yfcc", 4_000_000, 4_096, 800), 0.5, 40),
        BenchJob("mobilenet-cifar10", Workload("mobilenet", "cifar10", 60_000, _CIFAR10_MB, 12.0, 128), 0.2, 50),
        BenchJob("resnet50-cifar10", Workload("resnet50", "cifar10", 60_000, _CIFAR10_MB, 89.0, 32), 0.4, 40),
        BenchJob("bert-imdb", Workload("bert-base", "imdb", 25_000, _IMDB_MB, 340.0, 32, 0.000_05), 0.6, 20),
    )
}
