"""A language model of a few thousand random weights, in a folder that an engine accepts; nothing is downloaded.

Its tokens are words. `--load-format dummy` makes an engine draw the weights itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlcd.clouds.load.prompts import WORDS


def tiny_llama(folder: Path, layers: int = 2, hidden: int = 64, context: int = 2_048) -> Path:
    """Write a model with so many layers of this width; heads of 32 numbers, half as many of keys and values."""
    folder.mkdir(parents=True, exist_ok=True)
    heads = hidden // 32
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "head_dim": 32,
        "vocab_size": len(_vocabulary()),
        "max_position_embeddings": context,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }
    _write(folder / "config.json", config)
    _write(folder / "tokenizer.json", _tokenizer())
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": context, "chat_template": template}
    _write(folder / "tokenizer_config.json", {**names, **special})
    return folder


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _vocabulary() -> dict[str, int]:
    """The words that load tests write their prompts with, so that each is a token of its own."""
    return {word: i for i, word in enumerate(("<s>", "</s>", "<unk>", *WORDS))}


def _tokenizer() -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = [{"id": i, "content": each, "special": True, **flags} for i, each in enumerate(("<s>", "</s>", "<unk>"))]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": _vocabulary(), "unk_token": "<unk>"},
    }
