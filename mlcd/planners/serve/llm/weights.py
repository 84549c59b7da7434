"""Bytes of a language model: of its weights by precision, and of a request's KV cache.

8 bits apply to every linear layer of the blocks; embeddings and output layer stay in bf16. 4 bits apply to the experts
only, with everything else in bf16; in a model without experts, to every linear layer. Block scales are included: NVFP4
has one of 8 bits per 16 weights, int4 one of 16 bits per 128.
"""

from __future__ import annotations

from mlcd.planners.modeling.architecture import Architecture

BITS = {"fp32": 32.0, "tf32": 32.0, "bf16": 16.0, "fp16": 16.0, "fp8": 8.0, "int8": 8.0, "fp4": 4.5, "int4": 4.125}
UNQUANTISED = 16.0
"""Bits of parts that are not quantised."""
KV_BYTES = {"fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "int8": 1.0, "fp4": 0.5625, "fp32": 4.0}


def expert_parameters(architecture: Architecture) -> float:
    """Parameters of all routed experts together."""
    layers = architecture.layers - architecture.dense_layers
    return 3.0 * layers * architecture.experts * architecture.hidden * architecture.expert_hidden


def weight_bytes(architecture: Architecture, precision: str) -> float:
    """Bytes of all weights."""
    experts, embeddings, rest = _parts(architecture)
    expert_bits, embedding_bits, rest_bits = _bits(architecture, precision)
    return (experts * expert_bits + embeddings * embedding_bits + rest * rest_bits) / 8


def weight_parts(architecture: Architecture, precision: str) -> tuple[float, float]:
    """Bytes of all experts, and of all other weights that a step reads (of the embeddings only the output layer)."""
    experts, embeddings, rest = _parts(architecture)
    expert_bits, embedding_bits, rest_bits = _bits(architecture, precision)
    return experts * expert_bits / 8, (embeddings / 2 * embedding_bits + rest * rest_bits) / 8


def weight_bytes_read(architecture: Architecture, precision: str, tokens: float) -> float:
    """Bytes of weights read in a step of `tokens` tokens, each of which chooses its experts at random."""
    experts, rest = weight_parts(architecture, precision)
    idle = 1 - architecture.experts_per_token / architecture.experts if architecture.experts else 0.0
    return experts * (1.0 - float(idle ** max(tokens, 1.0))) + rest


def kv_bytes(architecture: Architecture, kv_cache: str, tokens: float) -> float:
    """KV cache bytes of one request with `tokens` tokens. `kv_cache`: its precision; auto is 16 bits."""
    each = KV_BYTES.get(kv_cache, 2.0)
    if architecture.latent:
        return each * architecture.latent * architecture.full_layers * tokens
    in_window = (architecture.layers - architecture.full_layers) * min(tokens, architecture.window)
    return each * 2 * architecture.kv_heads * architecture.head_dim * (architecture.full_layers * tokens + in_window)


def _parts(architecture: Architecture) -> tuple[float, float, float]:
    """Parameters of the experts, of embeddings and output layer, and of the rest."""
    experts, embeddings = expert_parameters(architecture), 2.0 * architecture.vocab * architecture.hidden
    total = 1e9 * architecture.params_b
    embeddings = min(embeddings, 0.5 * total)  # a small model's output layer is its embedding
    return experts, embeddings, max(total - experts - embeddings, 0.0)


def _bits(architecture: Architecture, precision: str) -> tuple[float, float, float]:
    bits = BITS.get(precision, UNQUANTISED)
    expert_bits = architecture.expert_bits or bits
    kept = max(bits, UNQUANTISED)  # parts that no precision shrinks
    four_bit_experts = architecture.experts > 0 and bits < 8
    return expert_bits, kept, kept if four_bit_experts or architecture.expert_bits else bits
