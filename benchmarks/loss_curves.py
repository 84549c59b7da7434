"""How well the epochs to a target are predicted while a job trains: python benchmarks/loss_curves.py [--each] [CSV].

Curves: this project's own jobs (LR and SVM on Higgs-like and YFCC-like data, the small MobileNet on images; trained
here in the order that functions would), and the real ones of Pollux (validation.csv: cifar10 and imagenet by accuracy,
yolov3 by loss; bert has two epochs only). Targets: the level that each curve, smoothed by a median of five, has at 30,
50, 70 and 90 % of the run. The truth is the first epoch at or past the target, as a run would end there. It prints the
relative error of the expected epochs when 1/4, 1/2 and 3/4 of them are over, and how often the interval held the truth.
'never': the target was not expected to be reached; such an error counts as 1,000 %.

The constants of the fit were chosen on nearly all of these curves, by the medians of whole groups, never for a single
curve: almost nothing here is held out. A learning rate that is cut (imagenet at epochs 30, 60 and 80; cifar10
and yolov3 anneal) makes a cliff that no smooth curve foresees: the largest errors are named.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlcd.planners.functions.workloads import dataset, trainer
from mlcd.planners.modeling.loss_curve import COVERED, fit

POLLUX = Path(__file__).parents[2] / "shared/data/elastic/pollux/validation.csv"
LEVELS = (0.3, 0.5, 0.7, 0.9)
SHARES = (0.25, 0.5, 0.75)
FEWEST = 12
"""Fewest epochs to a target: a quarter of fewer is too little to fit."""
WORST = 10.0
OWN = (
    ("lr", "higgs", 16_000, 80, ((0.003, 200), (0.01, 200), (0.03, 200), (0.01, 2_000))),
    ("svm", "higgs", 16_000, 80, ((0.003, 200), (0.01, 200), (0.03, 200), (0.01, 2_000))),
    ("lr", "yfcc", 1_000, 60, ((0.001, 100), (0.01, 100))),
    ("svm", "yfcc", 1_000, 60, ((0.001, 100), (0.01, 100))),
    ("mobilenet", "images", 320, 40, ((0.03, 32), (0.05, 32))),
)
"""Model, data, samples, epochs, and (learning rate, batch) pairs."""
Losses = np.ndarray


@dataclass(frozen=True)
class Guess:
    """One prediction: its curve, target, progress, and result."""

    curve: str
    truth: int
    share: float
    expected: float
    held: bool

    @property
    def group(self) -> str:
        return self.curve.split(",")[0]

    @property
    def error(self) -> float:
        return min(abs(self.expected - self.truth) / self.truth, WORST)


def own_curves(epochs_share: float) -> Iterator[tuple[str, Losses]]:
    for model, data, samples, epochs, settings in OWN:
        if model == "mobilenet":
            import torch

            torch.set_num_threads(1)
        job = trainer(model, data)
        features, labels = dataset(data).rows(0, samples, 0)
        for rate, batch in settings:
            parameters, losses = job.initial(0), []
            for _ in range(max(FEWEST, round(epochs * epochs_share))):
                for i in range(0, samples, batch):
                    _, gradient = job.gradient(parameters, features[i : i + batch], labels[i : i + batch])
                    parameters = parameters - np.float32(rate) * gradient
                losses.append(job.loss(parameters, features, labels))
            yield f"{model} {data}, rate {rate:g}, batch {batch}", np.array(losses)


def pollux_curves(path: Path) -> Iterator[tuple[str, Losses]]:
    found: dict[tuple[str, str], list[float]] = {}
    with path.open() as lines:
        for row in csv.DictReader(lines):
            found.setdefault((row["model"], row["global_batch"]), []).append(float(row["metric"]))
    for (model, batch), metrics in found.items():
        sign = 1.0 if model == "yolov3" else -1.0  # the others report accuracy
        yield f"{model}, batch {batch}", sign * np.array(metrics)


def guesses(name: str, losses: Losses) -> Iterator[Guess]:
    smooth = [float(np.median(losses[max(0, i - 2) : i + 3])) for i in range(len(losses))]
    for level in LEVELS:
        target = smooth[round(level * len(losses)) - 1]
        truth = int(np.argmax(losses <= target)) + 1
        if truth < FEWEST:
            continue
        for share in SHARES:
            curve = fit(losses[: round(share * truth)].tolist())
            if curve is not None:
                found = curve.epochs_to(target)
                yield Guess(name, truth, share, found.expected, found.low <= truth <= found.high)


def tell(title: str, told: list[Guess]) -> None:
    for share in SHARES:
        here = [guess for guess in told if guess.share == share]
        if not here:
            continue
        errors = np.array([guess.error for guess in here])
        worst = max(here, key=lambda guess: guess.error)
        never = sum(math.isinf(guess.expected) for guess in here)
        print(
            f"{title:16} at {share:4.0%} of {len(here):3} runs: median {np.median(errors):6.1%}, p90"
            f" {np.quantile(errors, 0.9):7.1%}, within 10 %: {np.mean(errors <= 0.1):4.0%}, interval held"
            f" {np.mean([guess.held for guess in here]):4.0%}, never {never:2}; worst {worst.error:7.1%}"
            f" ({worst.curve}, {worst.truth} epochs)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", nargs="?", type=Path, default=POLLUX)
    parser.add_argument("--each", action="store_true", help="print every prediction")
    parser.add_argument("--short", type=float, default=1.0, help="train the own jobs for this share of their epochs")
    wanted = parser.parse_args()
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}; intervals are to hold {COVERED:.0%}; seed 0")
    told: list[Guess] = []
    curves = [*own_curves(wanted.short), *(pollux_curves(wanted.csv) if wanted.csv.exists() else ())]
    began_s = time.process_time()
    for name, losses in curves:
        told += guesses(name, losses)
    spent_s = time.process_time() - began_s
    if wanted.each:
        for guess in told:
            far = "never" if math.isinf(guess.expected) else f"{guess.expected:.1f}"
            held = "" if guess.held else ", outside its interval"
            print(f"{guess.curve}: {guess.truth} epochs, at {guess.share:.0%} {far} ({guess.error:.1%}){held}")
    for group in dict.fromkeys(guess.group for guess in told):
        tell(group, [guess for guess in told if guess.group == group])
    own = [guess for guess in told if "rate" in guess.curve]
    tell("own jobs", own)
    tell("all but imagenet", [guess for guess in told if guess.group != "imagenet"])
    tell("all", told)
    print(f"{1e3 * spent_s / max(1, len(told)):.0f} ms of CPU time for a fit and a prediction")


if __name__ == "__main__":
    main()
