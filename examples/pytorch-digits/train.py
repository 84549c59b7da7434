"""A small CNN on scikit-learn's digits, data-parallel with PyTorch: torchrun train.py.

`torchrun` finds the other nodes by itself: MLCD sets the variables that it reads. Each step trains on one global batch,
of which every worker takes its share: however many there are, the same is learned.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mlcd_tracker

BATCH = 128
TRAIN = 11 * BATCH  # of 1,797 images; the rest tests


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
    epochs = parser.parse_args().epochs

    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, workers = dist.get_rank(), dist.get_world_size()
    net = DistributedDataParallel(model())
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    images, labels = digits()
    first_epoch = load(net, optimizer)

    for epoch in range(first_epoch, epochs):
        order = torch.randperm(TRAIN, generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(BATCH):
            mine = batch[rank::workers]
            loss = nn.functional.cross_entropy(net(images[mine]), labels[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mlcd_tracker.step(BATCH)
        if rank == 0:
            print(f"epoch {epoch + 1}, loss {loss.item():.4f}", flush=True)
            save(net, optimizer, epoch + 1)

    if rank == 0:
        with torch.no_grad():
            right = net.module(images[TRAIN:]).argmax(1) == labels[TRAIN:]
        print(f"accuracy {right.float().mean():.4f}", flush=True)
    dist.destroy_process_group()


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    return images[order], torch.tensor(data.target)[order]


def checkpoint() -> Path | None:
    folder = mlcd_tracker.checkpoint_dir()
    return Path(folder) / "digits.pt" if folder else None


def save(net: nn.Module, optimizer: torch.optim.Optimizer, epochs: int) -> None:
    """Whole or not at all: a node may be gone at any moment."""
    if (path := checkpoint()) is not None:
        partial = path.with_suffix(".partial")
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epochs": epochs}, partial)
        os.replace(partial, path)
        mlcd_tracker.saved()


def load(net: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Go on from what is there: the epochs that are done."""
    path = checkpoint()
    if path is None or not path.exists():
        return 0
    state = torch.load(path)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epochs"])


if __name__ == "__main__":
    main()
