"""For PyTorch: measure the gradient noise, and tell all workers in the same step when the job should save and leave.

    meter = NoiseMeter(net)             # net: a DistributedDataParallel, or a plain module in one process
    ...
    optimizer.step()
    if meter.step(BATCH):               # in place of mlcd_tracker.step(BATCH)
        ...                             # save, and end with exit code 0

A single worker compares the gradients of parts of its batch, if the loop lets it:

    for part, share in meter.parts(mine):               # one part, or two halves in the steps that measure
        (share * loss_of(net(images[part]), labels[part])).backward()

Accumulated micro-batches count as parts. If a step is a single backward pass, gradients of consecutive steps are
compared. This overestimates the noise somewhat, since the network changes in between, and takes the memory of one more
gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mlcd_tracker
from mlcd_tracker.meter import Meter
from mlcd_tracker.pytorch_parts import Parts
from mlcd_tracker.pytorch_workers import Workers

T = TypeVar("T")


class NoiseMeter(Meter):
    """Measures the noise while a network trains, in less than 2 % of the time. Outside MLCD it does nothing.

    `scaler`: the GradScaler, if any, so that its factor is removed from the norms. `always`: measure outside MLCD, too.
    `every`: measure every so many steps, whatever it costs.
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        scaler: Any = None,
        always: bool = False,
        every: int | None = None,
    ) -> None:
        super().__init__(_source(net, scaler) if always or mlcd_tracker.inside() else None, every)

    def parts(self, batch: T) -> Iterator[tuple[T, float]]:
        """A worker's batch in one part or two, each with its share of the whole, a factor for its loss.

        A batch is a tensor, or a tuple, list or mapping of tensors.
        """
        size = _size(batch)
        if isinstance(self._source, Parts) and self._source.measures and size > 1:
            for part, share in ((_cut(batch, 0, size // 2), size // 2), (_cut(batch, size // 2, size), -(-size // 2))):
                self._source.shares.append(share / size)
                yield part, share / size
        else:
            yield batch, 1.0

    def step(self, samples: float) -> bool:
        """End a step over so many samples of all workers. True, in all workers at once: save and leave."""
        return self._done(samples)


def _source(net: nn.Module, scaler: Any) -> Workers | Parts:
    if isinstance(net, DistributedDataParallel) and dist.get_world_size(net.process_group) > 1:
        return Workers(net, scaler)
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        raise ValueError("NoiseMeter: several processes train; wrap the network in DistributedDataParallel first")
    return Parts([parameter for parameter in net.parameters() if parameter.requires_grad], scaler)


def _size(batch: Any) -> int:
    if isinstance(batch, Mapping):
        return _size(next(iter(batch.values())))
    return _size(batch[0]) if isinstance(batch, tuple | list) else len(batch)


def _cut(batch: Any, begin: int, end: int) -> Any:
    if isinstance(batch, Mapping):
        return {name: _cut(value, begin, end) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(_cut(value, begin, end) for value in batch)
    return batch[begin:end]
