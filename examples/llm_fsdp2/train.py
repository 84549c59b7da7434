"""A small language model with PyTorch's FSDP2, or DistributedDataParallel, by MLCD's plan: torchrun train.py.

MLCD chooses micro-batch, sharding, checkpointing and precision. The result of training does not depend on them, since
a step always has the same global batch. It runs on CPUs and GPUs. The text is the standard library's source, by bytes.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from decoder import Decoder, sizes_of
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import mlcd_tracker
from mlcd_tracker.plan import Plan
from mlcd_tracker.pytorch_leaving import Leaving

SEQUENCE = int(os.environ.get("MLCD_SEQUENCE", "64"))
WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
FROM_FIRST = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
KINDS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Training:
    """The model on this rank, and its training step."""

    def __init__(self, plan: Plan, device: torch.device) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.plan, self.device, self.steps = plan.shared_by(self.ranks), device, 0
        self.accumulation = self.plan.accumulation(self.ranks)
        self.kind = KINDS[plan.precision.removeprefix("pure-")]
        model = Decoder(sizes_of(Path(__file__).with_name("config.json")), plan.checkpointing == "full").to(device)
        self.net = self.laid_out(model.to(self.kind) if plan.precision.startswith("pure-") else model)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 3e-3)

    def laid_out(self, model: Decoder) -> nn.Module:
        """zero3: every rank stores a shard. zero2: weights stay whole from the forward to the backward pass."""
        if self.plan.sharding == "none":
            return DistributedDataParallel(model)
        reshard, kinds = self.plan.sharding == "zero3", MixedPrecisionPolicy(self.kind, torch.float32)
        for block in model.blocks:
            fully_shard(block, reshard_after_forward=reshard, mp_policy=kinds)
        return fully_shard(model, reshard_after_forward=reshard, mp_policy=kinds)

    def step(self, batch: torch.Tensor) -> float:
        """An optimizer step over a global batch; its loss."""
        mine = batch[self.rank :: self.ranks].to(self.device)
        loss = torch.zeros((), device=self.device)
        for i, part in enumerate(mine.split(self.plan.micro_batch)):
            if isinstance(self.net, DistributedDataParallel):  # sharded gradients are small: always reduced
                self.net.require_backward_grad_sync = i + 1 == self.accumulation
            with torch.autocast(self.device.type, self.kind, enabled=self.plan.precision in ("bf16", "fp16")):
                share = self.net(part) / self.accumulation
            share.backward()
            loss += share.detach()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps += 1
        dist.all_reduce(loss)
        return loss.item() / self.ranks

    def save(self) -> None:
        """The first rank saves the whole state, so that any number of ranks can resume with any plan."""
        if (path := checkpoint()) is None:
            return
        model, optimizer = get_state_dict(self.net, self.optimizer, options=WHOLE)
        if self.rank == 0:
            torch.save({"model": model, "optimizer": optimizer, "steps": self.steps}, path.with_suffix(".partial"))
            os.replace(path.with_suffix(".partial"), path)
            mlcd_tracker.saved()

    def load(self) -> None:
        """Resume from the checkpoint."""
        path = checkpoint()
        if path is None or not path.exists():
            return
        kept = torch.load(path)
        self.steps = kept["steps"]
        states = {"model_state_dict": kept["model"], "optim_state_dict": kept["optimizer"]}
        options = WHOLE if self.plan.sharding == "none" else FROM_FIRST  # each rank takes its shard of the whole state
        set_state_dict(self.net, self.optimizer, **states, options=options)


def checkpoint() -> Path | None:
    folder = mlcd_tracker.checkpoint_dir()
    return Path(folder) / "decoder.pt" if folder else None


def batches(text: torch.Tensor, size: int, step: int) -> torch.Tensor:
    """The sequences of a step, determined by its number alone."""
    starts = torch.randint(len(text) - SEQUENCE - 1, (size,), generator=torch.Generator().manual_seed(step))
    return text[starts[:, None] + torch.arange(SEQUENCE + 1)].long()


def source() -> torch.Tensor:
    files = sorted(Path(os.__file__).parent.glob("*.py"))[:40]
    return torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=25)
    given = parser.parse_args()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    dist.init_process_group("nccl" if gpu else "gloo")
    if gpu:
        torch.cuda.set_device(device)

    torch.manual_seed(0)
    plan = Plan.told(micro_batch=4, global_batch=16, precision="fp32")
    training, text, leaving = Training(plan, device), source(), Leaving()
    training.load()
    while training.steps < given.steps:
        loss = training.step(batches(text, plan.global_batch, training.steps))
        mlcd_tracker.step(plan.global_batch)
        if training.rank == 0:
            print(f"step {training.steps}, loss {loss:.5f}", flush=True)
        if leave := leaving.now():
            print("leaving", flush=True)
        if leave or training.steps % given.save_every == 0 or training.steps == given.steps:
            training.save()
        if leave:
            break
    dist.barrier()  # no rank exits before the first one has saved
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
