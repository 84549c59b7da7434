"""A character-level LSTM that learns to write Python, data-parallel with PyTorch.

The text is the standard library's own source, so nothing is downloaded. Started as `python train.py` on every node,
without torchrun: MLCD sets MASTER_ADDR, RANK and WORLD_SIZE, which init_process_group reads. `torchrun train.py` works
as well.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mlcd_tracker

BATCH, LENGTH = 64, 32  # sequences in a global batch, characters in each
SAVE_EVERY = 20  # steps


class CharRNN(nn.Module):
    def __init__(self, hidden: int = 96) -> None:
        super().__init__()
        self.embed = nn.Embedding(128, 32)
        self.lstm = nn.LSTM(32, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 128)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(text))[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    steps = parser.parse_args().steps

    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, workers = dist.get_rank(), dist.get_world_size()
    net = DistributedDataParallel(CharRNN())
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    text = source()
    first_step = load(net, optimizer)

    for step in range(first_step, steps):
        starts = torch.randint(len(text) - LENGTH - 1, (BATCH,), generator=torch.Generator().manual_seed(step))
        mine = text[starts[rank::workers, None] + torch.arange(LENGTH + 1)].long()
        loss = nn.functional.cross_entropy(net(mine[:, :-1]).flatten(0, 1), mine[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mlcd_tracker.step(BATCH)
        if rank == 0 and ((step + 1) % SAVE_EVERY == 0 or step + 1 == steps):
            print(f"step {step + 1}, loss {loss.item():.3f}", flush=True)
            save(net, optimizer, step + 1)

    if rank == 0:
        print(f"loss {held_out_loss(net.module):.3f} on text it has not seen; {math.log(128):.3f} is chance")
    dist.destroy_process_group()


def source(modules: str = "[a-n]*.py") -> torch.Tensor:
    """Python's own source, as ASCII codes."""
    files = sorted(Path(os.__file__).parent.glob(modules))
    codes = torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8)
    return codes[codes < 128]


def held_out_loss(net: nn.Module) -> float:
    """Loss in nats a character, on held-out files."""
    windows = source("[o-r]*.py").unfold(0, LENGTH + 1, LENGTH)[::100].long()
    with torch.no_grad():
        return nn.functional.cross_entropy(net(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten()).item()


def checkpoint() -> Path | None:
    folder = mlcd_tracker.checkpoint_dir()
    return Path(folder) / "char-rnn.pt" if folder else None


def save(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Save atomically: a node may be preempted at any moment."""
    if (path := checkpoint()) is not None:
        partial = path.with_suffix(".partial")
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, partial)
        os.replace(partial, path)
        mlcd_tracker.saved()


def load(net: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Resume from the checkpoint; the number of finished steps."""
    path = checkpoint()
    if path is None or not path.exists():
        return 0
    state = torch.load(path)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["steps"])


if __name__ == "__main__":
    main()
