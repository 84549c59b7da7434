"""Our own small PyTorch models: recurrent, generative and recommender families, and a detector."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mlcd_bench.learn.torch_model import Module, Tensor, wired


def recurrent(cell: str, vocabulary: int, width: int, hidden: int, layers: int, both_ways: bool = False) -> Module:
    """Word embeddings, LSTM or GRU layers, 20 classes."""
    from torch import nn

    def forward(parts: Any, sentence: Tensor) -> Tensor:
        states, _ = parts.cells(parts.embedding(sentence))
        return parts.head(states[:, -1])

    cells = getattr(nn, cell)(width, hidden, layers, batch_first=True, bidirectional=both_ways)
    head = nn.Linear(hidden * (2 if both_ways else 1), 20)
    return wired(forward, embedding=nn.Embedding(vocabulary, width), cells=cells, head=head)


def dcgan(side: int, width: int, noise: int = 100) -> Module:
    """The generator of Radford et al. (2016): noise through transposed convolutions to an image of side 64, 128 ..."""
    from torch import nn

    steps = side.bit_length() - 4
    channels = [width * 2**step for step in range(steps, -1, -1)]
    layers = [nn.ConvTranspose2d(noise, channels[0], 4, 1, 0, bias=False), nn.BatchNorm2d(channels[0]), nn.ReLU(True)]
    for before, after in pairwise(channels):
        layers += [nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)]
    layers += [nn.ConvTranspose2d(channels[-1], 3, 4, 2, 1, bias=False), nn.Tanh()]
    return nn.Sequential(*layers)


def mlp_gan(noise: int, hidden: int, pixels: int) -> Module:
    """A generator of dense layers."""
    from torch import nn

    sizes = [noise, hidden, 2 * hidden, 4 * hidden]
    layers: list[Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], pixels), nn.Tanh())


def pix2pix(width: int = 64, depth: int = 7) -> Module:
    """The U-Net generator of Isola et al. (2017)."""
    import torch
    from torch import nn

    sizes = [3, *(min(width * 2**step, 8 * width) for step in range(depth))]
    down = nn.ModuleList(nn.Conv2d(a, b, 4, 2, 1) for a, b in pairwise(sizes))
    after = [*sizes[1:-1][::-1], 3]
    before = [sizes[-1], *(2 * size for size in after[:-1])]
    up = nn.ModuleList(nn.ConvTranspose2d(a, b, 4, 2, 1) for a, b in zip(before, after, strict=True))

    def forward(parts: Any, image: Tensor) -> Tensor:
        kept = []
        for layer in parts.down:
            image = nn.functional.leaky_relu(layer(image), 0.2)
            kept.append(image)
        kept.pop()
        for layer in parts.up:
            image = nn.functional.relu(layer(image))
            if kept:
                image = torch.cat((image, kept.pop()), 1)
        return torch.tanh(image)

    return wired(forward, down=down, up=up)


def super_resolution(width: int = 64, blocks: int = 8) -> Module:
    """The residual generator of Ledig et al. (2017): an image four times as wide."""
    from torch import nn

    def block() -> Module:
        return nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width), nn.PReLU(), nn.Conv2d(width, width, 3, 1, 1)
        )

    def forward(parts: Any, image: Tensor) -> Tensor:
        flow = parts.head(image)
        for each in parts.body:
            flow = flow + each(flow)
        return parts.tail(flow)

    def larger() -> list[Module]:
        return [nn.Conv2d(width, 4 * width, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU()]

    tail = nn.Sequential(*larger(), *larger(), nn.Conv2d(width, 3, 9, 1, 4))
    return wired(
        forward, head=nn.Conv2d(3, width, 9, 1, 4), body=nn.ModuleList(block() for _ in range(blocks)), tail=tail
    )


def detector(width: int = 16) -> Module:
    """A single-shot detector in the manner of Tiny YOLO (Redmon and Farhadi, 2017): 416 pixels to a 13 x 13 grid."""
    from torch import nn

    sizes = [3, *(width * 2**step for step in range(6)), 64 * width]
    layers: list[Module] = []
    for step, (before, after) in enumerate(pairwise(sizes)):
        layers += [nn.Conv2d(before, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(0.1)]
        layers += [nn.MaxPool2d(2)] if step < 5 else []
    return nn.Sequential(*layers, nn.Conv2d(sizes[-1], 125, 1))


def dense(*sizes: int) -> Module:
    """Dense layers with ReLU between."""
    from torch import nn

    layers: list[Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def neural_filtering(people: int, width: int) -> Module:
    """Neural collaborative filtering (He et al., 2017): a product and dense layers, of a user and an item."""
    import torch
    from torch import nn

    def forward(parts: Any, pair: Tensor) -> Tensor:
        user, item = parts.people(pair[:, 0]), parts.things(pair[:, 1])
        together = parts.deep(torch.cat((user, item), 1))
        return parts.head(torch.cat((user * item, together), 1))

    people_table, things = nn.Embedding(people, width), nn.Embedding(people, width)
    deep = dense(2 * width, 4 * width, 2 * width, width)
    return wired(forward, people=people_table, things=things, deep=deep, head=nn.Linear(2 * width, 1))


def dlrm(categories: int, numbers: int, vocabulary: int, width: int) -> Module:
    """The recommender of Naumov et al. (2019): all pairs of embeddings multiplied."""
    import torch
    from torch import nn

    def forward(parts: Any, chosen: Tensor, values: Tensor) -> Tensor:
        numbers_seen = parts.bottom(values)
        each = torch.cat((parts.embedding(chosen + parts.offset), numbers_seen[:, None]), 1)
        pairs = torch.bmm(each, each.transpose(1, 2)).flatten(1)
        return parts.top(torch.cat((pairs, numbers_seen), 1))

    inner = (categories + 1) ** 2 + width
    return wired(
        forward,
        embedding=nn.Embedding(categories * vocabulary, width),
        bottom=dense(numbers, 512, 256, width),
        top=dense(inner, 512, 256, 1),
        offset=nn.Parameter(torch.arange(categories) * vocabulary, requires_grad=False),
    )


def deepfm(categories: int, vocabulary: int, width: int, hidden: int) -> Module:
    """Factorisation machine beside dense layers (Guo et al., 2017)."""
    from torch import nn

    def forward(parts: Any, chosen: Tensor) -> Tensor:
        each = parts.embedding(chosen)
        pairs = 0.5 * (each.sum(1).square() - each.square().sum(1)).sum(1, keepdim=True)
        return parts.linear(chosen).sum(1) + pairs + parts.deep(each.flatten(1))

    deep = dense(categories * width, hidden, hidden, hidden, 1)
    return wired(forward, embedding=nn.Embedding(vocabulary, width), linear=nn.Embedding(vocabulary, 1), deep=deep)


def wide_and_deep(categories: int, numbers: int, vocabulary: int, width: int) -> Module:
    """A linear part beside a deep one (Cheng et al., 2016)."""
    import torch
    from torch import nn

    def forward(parts: Any, chosen: Tensor, values: Tensor) -> Tensor:
        everything = torch.cat((parts.embedding(chosen).flatten(1), values), 1)
        return parts.wide(chosen).sum(1) + parts.deep(everything)

    deep = dense(categories * width + numbers, 1024, 512, 256, 1)
    return wired(forward, embedding=nn.Embedding(vocabulary, width), wide=nn.Embedding(vocabulary, 1), deep=deep)
