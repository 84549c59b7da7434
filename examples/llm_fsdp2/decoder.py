"""A Llama-like decoder of the sizes in a Hugging Face config.json, in plain PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

Sizes = dict[str, int]


class Attention(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        hidden, self.heads = sizes["hidden_size"], sizes["num_attention_heads"]
        self.width, self.shared = hidden // self.heads, self.heads // sizes["num_key_value_heads"]
        keys = hidden // self.shared
        self.queries, self.out = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.keys, self.values = nn.Linear(hidden, keys, bias=False), nn.Linear(hidden, keys, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        queries, keys, values = (self.split(each(x)) for each in (self.queries, self.keys, self.values))
        keys, values = (each.repeat_interleave(self.shared, dim=1) for each in (turned(keys), values))
        seen = scaled_dot_product_attention(turned(queries), keys, values, is_causal=True)
        return self.out(seen.transpose(1, 2).flatten(2))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(2, (-1, self.width)).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, sizes: Sizes, recomputed: bool) -> None:
        super().__init__()
        hidden, ffn = sizes["hidden_size"], sizes["intermediate_size"]
        self.attention, self.before, self.between = Attention(sizes), nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down, self.recomputed = nn.Linear(ffn, hidden, bias=False), recomputed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.layer, x, use_reentrant=False) if self.recomputed else self.layer(x)

    def layer(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        wide = self.between(x)
        return x + self.down(silu(self.gate(wide)) * self.up(wide))


class Decoder(nn.Module):
    """`recomputed`: blocks store only their input and are recomputed in the backward pass (checkpointing)."""

    def __init__(self, sizes: Sizes, recomputed: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(sizes["vocab_size"], sizes["hidden_size"])
        self.blocks = nn.ModuleList(Block(sizes, recomputed) for _ in range(sizes["num_hidden_layers"]))
        self.norm = nn.RMSNorm(sizes["hidden_size"])
        self.head = nn.Linear(sizes["hidden_size"], sizes["vocab_size"], bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The mean loss of predicting each token from those before it."""
        x = self.embed(tokens[:, :-1])
        for block in self.blocks:
            x = block(x)
        return cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), tokens[:, 1:].flatten())


def turned(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions: the two halves of a head are rotated by an angle that grows with the position."""
    half = x.shape[-1] // 2
    speeds = 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def sizes_of(config: Path) -> Sizes:
    return json.loads(config.read_text(encoding="utf-8"))
