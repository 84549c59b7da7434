"""A small CNN on scikit-learn's digits, data-parallel with PyTorch: torchrun train.py.

`torchrun` finds the other nodes by itself: MLCD sets the variables that it reads. Each step trains on one global batch,
of which every worker takes its share, so the result does not depend on the number of workers.

The job is elastic: it asks MLCD for the batch, and reports the gradient noise (the two lines with `meter`) and the
accuracy. When MLCD asks it to move, it saves within the epoch and exits, and later resumes with the next sample.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mlcd_tracker
from mlcd_tracker.pytorch import NoiseMeter

USUAL_BATCH = 128
TRAIN = 11 * USUAL_BATCH  # of 1,797 images; the others are the test set


@dataclass
class Progress:
    """Finished epochs, and finished samples of the current one."""

    epochs: int = 0
    samples: int = 0


def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=3e-4, help="at a batch of 128")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    dist.init_process_group("gloo")
    net = DistributedDataParallel(model())
    optimizer = torch.optim.Adam(net.parameters(), options.learning_rate)
    images, labels = digits()
    progress = load(net, optimizer)
    meter = NoiseMeter(net)

    while progress.epochs < options.epochs:
        chance = torch.Generator().manual_seed(options.seed + progress.epochs)
        order, shown = torch.randperm(TRAIN, generator=chance), moved(images[:TRAIN], chance)
        for batch in order[progress.samples :].split(mlcd_tracker.batch(USUAL_BATCH)):
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate * meter.lr_scale(USUAL_BATCH)
            optimizer.zero_grad()
            for part, share in meter.parts(batch[dist.get_rank() :: dist.get_world_size()]):
                (share * nn.functional.cross_entropy(net(shown[part]), labels[part])).backward()
            optimizer.step()
            progress.samples += len(batch)
            if meter.step(len(batch)):
                save(net, optimizer, progress)
                end()
                return
        progress = Progress(progress.epochs + 1)
        reached = mlcd_tracker.metric(accuracy(net, images[TRAIN:], labels[TRAIN:]))
        save(net, optimizer, progress)
        if reached:
            break

    if dist.get_rank() == 0:
        told = accuracy(net, images[TRAIN:], labels[TRAIN:])
        print(f"accuracy {told:.4f} after {progress.epochs} epochs", flush=True)
    end()


def end() -> None:
    dist.barrier()  # no worker exits before the first one has saved
    dist.destroy_process_group()


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    return images[order], torch.tensor(data.target)[order]


def moved(images: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
    """Shift every image by up to one pixel each way; the same for any number of workers."""
    padded, shown = nn.functional.pad(images, (1, 1, 1, 1)), torch.empty_like(images)
    where = torch.randint(9, (len(images),), generator=chance)
    for i in range(9):
        down, right = divmod(i, 3)
        shown[where == i] = padded[where == i, :, down : down + 8, right : right + 8]
    return shown


@torch.no_grad()
def accuracy(net: DistributedDataParallel, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The same value in every worker, so that all end in the same epoch."""
    return float((net.module(images).argmax(1) == labels).float().mean())


def checkpoint() -> Path | None:
    folder = mlcd_tracker.checkpoint_dir()
    return Path(folder) / "digits.pt" if folder else None


def save(net: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Save atomically, in the first worker: a node may be preempted at any moment."""
    path = checkpoint()
    if path is None or dist.get_rank() > 0:
        return
    partial = path.with_suffix(".partial")
    done = {"epochs": progress.epochs, "samples": progress.samples}
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), **done}, partial)
    os.replace(partial, path)
    mlcd_tracker.saved()


def load(net: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Resume from the checkpoint."""
    path = checkpoint()
    if path is None or not path.exists():
        return Progress()
    state = torch.load(path)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return Progress(state["epochs"], state["samples"])


if __name__ == "__main__":
    main()
