"""The sizes of a language model and its number of parameters, from its Hugging Face `config.json`.

    parameters = embeddings + layers x (attention + feed-forward)
    attention:     grouped queries; latent (DeepSeek's MLA); linear with a constant state in some of the layers
    feed-forward:  dense, or experts, a few of which process each token

Only norms of the width of a layer are counted, and biases only of families that have them. `NAMES` maps the keys of
each family, such as `n_embd` and `hidden_size`, to ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlcd.core.errors import UserError

FILE = "config.json"
NAMES = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "multi_query_group_num", "num_kv_heads"),
    "head_dim": ("head_dim", "kv_channels"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "context": ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length"),
    "ffn": ("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts"),
    "expert_hidden": ("moe_intermediate_size", "intermediate_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
    "shared_hidden": ("shared_expert_intermediate_size",),
    "dense_layers": ("first_k_dense_replace", "moe_layer_start_index"),
}  # fmt: skip
"""The keys of each size in configs of different families."""
ENCODERS = ("bert", "roberta", "distilbert", "vit", "deit", "dinov2", "clip_vision_model", "siglip_vision_model")
TWO_MATRICES = (
    *("gpt2", "gpt_neox", "gptj", "phi", "falcon", "opt", "bloom", "starcoder2", "mpt", "gpt_bigcode"),
    *ENCODERS,
)
"""Families whose feed-forward layers have no gate, and whose linear layers have biases."""
POSITIONS = ("gpt2", "opt", "gpt_bigcode")
"""Families that learn an embedding for each position."""
TIED = ("gpt2", "gemma", "gemma2", "gemma3", "gemma3_text", "gpt_bigcode", "bloom", "falcon")
"""Families whose output layer is their embedding unless the config says otherwise."""
FOUR_BIT_EXPERTS = ("gpt_oss",)
"""Families published with experts in MXFP4."""
MXFP4_BITS = 4.25
AT_LEAST_ONE = ("hidden", "layers", "heads", "kv_heads", "head_dim")
LARGEST, LARGEST_SIZE = {"layers": 10_000}, 1e9
UNSUPPORTED = ("block_configs", "hybrid_override_pattern", "layers_block_type")
"""Keys of models whose layers differ in ways that are not supported."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes of a language model.

    `params_b`, `active_b`: billions of parameters, and of those that process one token. `dense_hidden`: width of a
    feed-forward layer without experts; `expert_hidden`: of one expert. `full_layers`: layers that cache keys and values
    of all tokens; the others cache the last `window` tokens (0: a constant state, or none). `latent`: cached numbers a
    token and layer of latent attention (DeepSeek's MLA), instead of keys and values. `context`: most tokens.
    `expert_bits`: bits of an expert's weight, if published in a fixed precision (gpt-oss); else 0.
    """

    params_b: float
    active_b: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int = 0
    dense_hidden: int = 0
    dense_layers: int = 0
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_hidden: int = 0
    full_layers: int = 0
    window: int = 0
    latent: int = 0
    expert_bits: float = 0.0


def read_architecture(path: Path) -> Architecture:
    """Read a config.json, or that of a folder."""
    return architecture_of(*read_config(path))


def read_config(path: Path) -> tuple[dict[str, Any], str]:
    """The content of a config.json, or of that in a folder; and the file's name for messages."""
    file = path / FILE if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file; a language model's folder has a {FILE}") from None
    except (OSError, UnicodeError) as error:
        raise UserError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(config, dict):
        raise UserError(f"{file}: expected an object with the sizes of a language model")
    return config, str(file)


def architecture_of(config: Mapping[str, Any], where: str = FILE) -> Architecture:
    """The architecture of a config. `where`: its name for messages."""
    nested = next((config[key] for key in ("text_config", "llm_config", "language_config") if config.get(key)), None)
    sizes = Sizes({**config, **nested} if isinstance(nested, Mapping) else config, where)
    for key in UNSUPPORTED:
        if sizes.config.get(key):
            raise UserError(f"{where}: {key}: models whose layers differ are not supported; leave the config out")
    experts, moe_layers = sizes.number("experts", 0), sizes.moe_layers
    attention = sum(sizes.attention_parameters(kind) for kind in sizes.kinds)
    dense = (sizes.layers - moe_layers) * sizes.mlp_parameters(sizes.number("ffn", 4 * sizes.hidden))
    expert = sizes.mlp_parameters(sizes.expert_hidden)
    always = sizes.shared * expert + (sizes.hidden * (experts + 1) if experts else 0)  # the router, and a gate
    total = sizes.embeddings + attention + dense + moe_layers * (always + experts * expert) + sizes.norms
    idle = moe_layers * expert * (experts - sizes.number("experts_per_token", experts))
    return Architecture(
        params_b=total / 1e9,
        active_b=(total - idle) / 1e9,
        layers=sizes.layers,
        hidden=sizes.hidden,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        vocab=sizes.number("vocab"),
        context=sizes.number("context", 0),
        dense_hidden=sizes.number("ffn", 4 * sizes.hidden) if moe_layers < sizes.layers else 0,
        dense_layers=sizes.layers - moe_layers,
        experts=experts,
        experts_per_token=sizes.number("experts_per_token", 0) if experts else 0,
        shared_experts=round(sizes.shared),
        expert_hidden=sizes.expert_hidden if experts else 0,
        full_layers=sizes.kinds.count(FULL),
        window=sizes.window if WINDOW in sizes.kinds else 0,
        latent=sizes.latent,
        expert_bits=MXFP4_BITS if sizes.family in FOUR_BIT_EXPERTS else 0.0,
    )


FULL, WINDOW, LINEAR = "full_attention", "sliding_attention", "linear_attention"
KINDS = {WINDOW: WINDOW, "local": WINDOW, LINEAR: LINEAR}
"""Names of kinds of attention; all others attend to every token."""


@dataclass(frozen=True)
class Sizes:
    """A config with its sizes under our names."""

    config: Mapping[str, Any]
    where: str

    def number(self, name: str, otherwise: int | None = None) -> int:
        """A size, or `otherwise` if the config has none; without `otherwise` a missing size is an error."""
        for key in NAMES[name]:
            value = self.config.get(key)
            if isinstance(value, list) and value:  # one value for each layer
                value = max(value)
            if isinstance(value, int | float) and not isinstance(value, bool):
                if not abs(value) <= LARGEST.get(name, LARGEST_SIZE) or (value < 1 and name in AT_LEAST_ONE):
                    raise UserError(f"{self.where}: {key} {value}: no language model has that size")
                return int(value)
            if isinstance(value, str) and otherwise is None:
                raise UserError(f"{self.where}: {key} '{value}': expected a number")
        if otherwise is None:
            raise UserError(f"{self.where}: no {' or '.join(NAMES[name][:2])}: the sizes of the model are incomplete")
        return otherwise

    @property
    def family(self) -> str:
        """The kind of model, as Hugging Face names it."""
        return str(self.config.get("model_type", ""))

    @property
    def hidden(self) -> int:
        """Width of a layer."""
        return self.number("hidden")

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.number("layers")

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return self.number("heads")

    @property
    def kv_heads(self) -> int:
        """Number of key-value heads."""
        count = 1 if self.config.get("multi_query") is True else self.number("kv_heads", self.heads)
        if self.heads % count and not self.latent:
            key = next(key for key in NAMES["kv_heads"] if key in self.config)
            raise UserError(f"{self.where}: {key} {count} does not divide the {self.heads} heads; correct one")
        return count

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.number("head_dim", self.hidden // self.heads)

    @property
    def expert_hidden(self) -> int:
        """Width of one expert."""
        return self.number("expert_hidden", self.number("ffn", 4 * self.hidden))

    @property
    def shared(self) -> float:
        """Number of experts that process every token."""
        if not self.number("experts", 0):
            return 0
        shared_hidden, usual = self.number("shared_hidden", 0), int(self.family.startswith("llama4"))
        return shared_hidden / self.expert_hidden if shared_hidden else self.number("shared_experts", usual)

    @property
    def moe_layers(self) -> int:
        """Number of layers with experts."""
        if not self.number("experts", 0):
            return 0
        keys = ("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step")
        step = next((self.config[key] for key in keys if self.config.get(key)), 1)
        if isinstance(step, list):  # one flag for each layer
            return sum(map(bool, step))
        dense = {*(self.config.get("mlp_only_layers") or ()), *range(self.number("dense_layers", 0))}
        return sum(i not in dense and (i + 1) % int(step) == 0 for i in range(self.layers))

    @property
    def latent(self) -> int:
        """Cached numbers of a token and layer of latent attention; else 0."""
        rank = self.config.get("kv_lora_rank")
        return int(rank) + int(self.config.get("qk_rope_head_dim") or 0) if rank else 0

    @property
    def window(self) -> int:
        """Tokens of sliding-window attention."""
        return int(self.config.get("sliding_window") or 0)

    @property
    def kinds(self) -> list[str]:
        """The kind of attention of each layer: full, sliding window, or linear."""
        listed = self.config.get("layer_types")
        if isinstance(listed, list) and len(listed) == self.layers:
            return [KINDS.get(str(kind), FULL) for kind in listed]
        linear = self.config.get("linear_attn_config")
        if isinstance(linear, Mapping) and linear.get("full_attn_layers"):  # Kimi counts layers from 1
            return [FULL if i + 1 in linear["full_attn_layers"] else LINEAR for i in range(self.layers)]
        if every := self.config.get("full_attention_interval"):
            return [FULL if (i + 1) % int(every) == 0 else LINEAR for i in range(self.layers)]
        if not self.window or self.config.get("use_sliding_window") is False:
            return [FULL] * self.layers
        every = int(self.config.get("sliding_window_pattern") or {"gemma2": 2, "gemma3_text": 6}.get(self.family, 0))
        return [FULL if every and (i + 1) % every == 0 else WINDOW for i in range(self.layers)]

    @property
    def embeddings(self) -> int:
        """Parameters of the input and output embeddings, and of positions."""
        tied = self.config.get("tie_word_embeddings", self.family in TIED)
        positions = self.number("context", 0) * self.hidden if self.family in POSITIONS else 0
        return self.number("vocab") * self.hidden * (1 if tied else 2) + positions

    @property
    def norms(self) -> int:
        """Parameters of the norms before attention and feed-forward of each layer, and of the final norm."""
        return (2 * self.layers + 1) * self.hidden

    def mlp_parameters(self, width: int) -> int:
        """Parameters of a feed-forward layer, or of an expert."""
        if self.family in TWO_MATRICES:
            return 2 * self.hidden * width + width + self.hidden
        biases = 2 * width + self.hidden if self.family in FOUR_BIT_EXPERTS else 0
        return 3 * self.hidden * width + biases

    def attention_parameters(self, kind: str) -> int:
        """Parameters of the attention of one layer."""
        if kind == LINEAR:
            return self._linear_parameters()
        if self.latent:
            return self._latent_parameters()
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        gated = 2 if self.config.get("attn_output_gate") or self.family.startswith("qwen3_next") else 1
        biases = queries + 2 * keys if self._has_bias else 0
        return self.hidden * (gated * queries + 2 * keys) + queries * self.hidden + biases

    @property
    def _has_bias(self) -> bool:
        return bool(self.config.get("attention_bias")) or self.family in (*TWO_MATRICES, "qwen2", "qwen2_moe")

    def _latent_parameters(self) -> int:
        config = self.config
        rope, rank = int(config.get("qk_rope_head_dim") or 0), int(config["kv_lora_rank"])
        nope = int(config.get("qk_nope_head_dim") or self.head_dim)
        wide, value = self.heads * (nope + rope), int(config.get("v_head_dim") or nope)
        low = config.get("q_lora_rank")
        queries = int(low) * (self.hidden + wide) if low else self.hidden * wide
        return (
            queries
            + self.hidden * (rank + rope)
            + rank * self.heads * (nope + value)
            + self.heads * value * self.hidden
        )

    def _linear_parameters(self) -> int:
        """Parameters of a gated delta rule (Qwen), or of one whose keys are as wide as its values (Kimi)."""
        kimi = self.config.get("linear_attn_config") or {}
        heads = int(kimi.get("num_heads") or self.config.get("linear_num_value_heads") or self.heads)
        value = heads * int(kimi.get("head_dim") or self.config.get("linear_value_head_dim") or self.head_dim)
        key_heads = int(kimi.get("num_heads") or self.config.get("linear_num_key_heads") or heads)
        key = key_heads * int(kimi.get("head_dim") or self.config.get("linear_key_head_dim") or self.head_dim)
        return self.hidden * (2 * key + 2 * value + 2 * heads) + value * self.hidden
