"""Sizes and number of parameters from a config.json; a mistake gives an error of one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.errors import UserError
from mlcd.planners.modeling.architecture import architecture_of, read_architecture
from mlcd.planners.serve.llm.weights import kv_bytes, weight_bytes, weight_bytes_read


def config(
    family: str, hidden: int, layers: int, heads: int, kv: int, ffn: int, vocab: int, **more: Any
) -> dict[str, Any]:
    """As Hugging Face writes it for most families."""
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": ffn}
    own = {"model_type": family, "num_key_value_heads": kv, "vocab_size": vocab, "tie_word_embeddings": False}
    return {**sizes, **own, **more}


LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
V3_EXPERTS = {"moe_intermediate_size": 2048, "n_shared_experts": 1, "num_experts_per_tok": 8, "q_lora_rank": 1536}
LLAMA_8B = config("llama", 4096, 32, 32, 8, 14336, 128256, max_position_embeddings=131072)
DEEPSEEK_V3 = config(
    "deepseek_v3",
    7168,
    61,
    128,
    128,
    18432,
    129280,
    n_routed_experts=256,
    first_k_dense_replace=3,
    **V3_EXPERTS,
    **LATENT,
)
QWEN3_MOE = {"head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1}
QWEN3_235B = config("qwen3_moe", 4096, 94, 64, 4, 12288, 151936, moe_intermediate_size=1536, **QWEN3_MOE)
OSS = {"head_dim": 64, "num_experts_per_tok": 4, "attention_bias": True, "sliding_window": 128}
ALTERNATING = ["sliding_attention", "full_attention"] * 18
GPT_OSS_120B = config("gpt_oss", 2880, 36, 64, 8, 2880, 201088, num_local_experts=128, layer_types=ALTERNATING, **OSS)
QWEN3_NEXT = config(
    "qwen3_next", 2048, 48, 16, 2, 5120, 151936, head_dim=256, moe_intermediate_size=512, num_experts=512,
    num_experts_per_tok=10, shared_expert_intermediate_size=512, full_attention_interval=4, linear_num_key_heads=16,
    linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128,
)  # fmt: skip
GEMMA3 = config(
    "gemma3_text", 5376, 62, 32, 16, 21504, 262208, head_dim=128, sliding_window=1024, sliding_window_pattern=6
)
MIXTRAL = config("mixtral", 4096, 32, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2)
QWEN2 = config("qwen2", 3584, 28, 28, 4, 18944, 152064, use_sliding_window=False, sliding_window=9)
GEMMA2 = config("gemma2", 3584, 42, 16, 8, 14336, 256000, head_dim=256, sliding_window=4096)
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
KIMI_K2 = {
    **DEEPSEEK_V3, "model_type": "kimi_k2", "n_routed_experts": 384, "num_attention_heads": 64, "vocab_size": 163840,
    "first_k_dense_replace": 1,
}  # fmt: skip
GLM = config(
    "glm4_moe", 5120, 92, 96, 8, 12288, 151552, head_dim=128, moe_intermediate_size=1536, n_routed_experts=160,
    n_shared_experts=1, num_experts_per_tok=8, first_k_dense_replace=3, attention_bias=True,
)  # fmt: skip
PUBLISHED = {
    "Llama-3.1-8B": (LLAMA_8B, 8.03, 8.03),
    "Llama-3.1-70B": (config("llama", 8192, 80, 64, 8, 28672, 128256), 70.55, 70.55),
    "Mistral-7B": (config("mistral", 4096, 32, 32, 8, 14336, 32000, sliding_window=4096), 7.24, 7.24),
    "Mixtral-8x7B": (MIXTRAL, 46.7, 12.9),
    "Qwen2.5-7B": (QWEN2, 7.62, 7.62),
    "Qwen3-8B": (config("qwen3", 4096, 36, 32, 8, 12288, 151936, head_dim=128), 8.19, 8.19),
    "Qwen3-235B-A22B": (QWEN3_235B, 235.1, 22.2),
    "Qwen3-Next-80B-A3B": (QWEN3_NEXT, 79.7, 3.9),
    "Gemma-2-9B": ({**GEMMA2, "tie_word_embeddings": True}, 9.24, 9.24),
    "Gemma-3-27B": ({"model_type": "gemma3", "text_config": {**GEMMA3, "tie_word_embeddings": True}}, 27.0, 27.0),
    "Phi-3-mini": (config("phi3", 3072, 32, 32, 32, 8192, 32064), 3.82, 3.82),
    "phi-2": (config("phi", 2560, 32, 32, 32, 10240, 51200), 2.78, 2.78),
    "gpt2": (GPT2, 0.124, 0.124),
    "gpt-neox-20b": (config("gpt_neox", 6144, 44, 64, 64, 24576, 50432), 20.55, 20.55),
    "DeepSeek-V3": (DEEPSEEK_V3, 671.0, 37.6),
    "Kimi-K2": (KIMI_K2, 1026.0, 32.9),
    "GLM-4.5": (GLM, 353.0, 33.6),
    "gpt-oss-120b": (GPT_OSS_120B, 116.8, 5.7),
}
"""Billions of parameters, all and in use (with the embedding, which OpenAI leaves out of 5.1)."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_counted_as_published(name: str) -> None:
    written, params_b, active_b = PUBLISHED[name]
    sizes = architecture_of(written)
    assert sizes.params_b == pytest.approx(params_b, rel=0.005)
    assert sizes.active_b == pytest.approx(active_b, rel=0.01)


def test_kinds_of_layers_are_recognised() -> None:
    oss, linear = architecture_of(GPT_OSS_120B), architecture_of(QWEN3_NEXT)
    gemma, deepseek = architecture_of(PUBLISHED["Gemma-3-27B"][0]), architecture_of(DEEPSEEK_V3)
    assert (oss.full_layers, oss.window) == (18, 128)
    assert (linear.full_layers, linear.window) == (12, 0)
    assert (gemma.full_layers, gemma.window) == (10, 1024)
    assert (deepseek.latent, deepseek.dense_layers, deepseek.shared_experts) == (576, 3, 1)
    assert architecture_of(PUBLISHED["Qwen2.5-7B"][0]).window == 0


def test_weights_take_what_their_checkpoints_take() -> None:
    llama, oss, deepseek = architecture_of(LLAMA_8B), architecture_of(GPT_OSS_120B), architecture_of(DEEPSEEK_V3)
    assert weight_bytes(llama, "bf16") == pytest.approx(16.06e9, rel=0.001)
    assert weight_bytes(llama, "fp8") == pytest.approx(9.08e9, rel=0.01)
    assert weight_bytes(oss, "bf16") == pytest.approx(65.2e9, rel=0.01), "its experts are published in MXFP4"
    assert weight_bytes(deepseek, "fp4") < 0.65 * weight_bytes(deepseek, "fp8")


def test_active_parameters_include_only_the_experts_of_a_token() -> None:
    sizes = architecture_of(QWEN3_235B)
    one, many = (weight_bytes_read(sizes, "bf16", tokens) for tokens in (1, 4096))
    assert one == pytest.approx(2e9 * sizes.active_b, rel=0.06), "a token passes through the active parameters"
    assert many == pytest.approx(2e9 * sizes.params_b, rel=0.01)


def test_keys_and_values_by_kind_of_attention() -> None:
    assert kv_bytes(architecture_of(LLAMA_8B), "auto", 1) == 2 * 2 * 32 * 8 * 128
    assert kv_bytes(architecture_of(LLAMA_8B), "fp8", 1) == 2 * 32 * 8 * 128
    assert kv_bytes(architecture_of(DEEPSEEK_V3), "auto", 10) == 10 * 2 * 61 * 576
    window, full = 18 * 128, 18 * 4096
    assert kv_bytes(architecture_of(GPT_OSS_120B), "auto", 4096) == 2 * 2 * 8 * 64 * (window + full)


def test_a_folder_is_read_through_its_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    assert read_architecture(tmp_path) == read_architecture(tmp_path / "config.json") == architecture_of(LLAMA_8B)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no such file"),
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ('{"model_type": "llama"}', "no num_hidden_layers or n_layer"),
        (json.dumps({**LLAMA_8B, "hybrid_override_pattern": "M-M*"}), "layers differ"),
    ],
)
def test_an_incomplete_config_gives_an_error_of_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=said) as refused:
        read_architecture(tmp_path)
    assert "\n" not in str(refused.value)


def test_heads_that_cannot_share_their_keys_are_refused_in_a_line() -> None:
    config = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32_000}
    with pytest.raises(
        UserError, match=r"^config\.json: num_key_value_heads 7 does not divide the 32 heads; correct one$"
    ):
        architecture_of({**config, "num_key_value_heads": 7})
