"""`mlcd plan --model`: any config.json as it lies on the disk of somebody who has never seen MLCD."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

LLAMA = {
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048,
    "vocab_size": 32000, "max_position_embeddings": 131072,
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257}
VIT = {
    "model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "image_size": 224, "patch_size": 16,
}  # fmt: skip


@pytest.fixture
def plan(mlcd: Any, tmp_path: Path) -> Any:
    def ask(config: dict[str, Any], *words: str, name: str = "model.json") -> Any:
        (tmp_path / name).write_text(json.dumps(config))
        return mlcd("plan", "--model", tmp_path / name, "--instances", "p5.4xlarge", "--nodes", "1", *words)

    return ask


@pytest.mark.parametrize(
    ("config", "tokens", "work"),
    [
        (LLAMA, "4096k", "4.1M tokens in 1k sequences"),  # of 4096, though it takes more
        (GPT2, "1024k", "1.02M tokens in 1k sequences"),  # of the 1024 that it takes at the most
        (VIT, "197k", "1k samples"),  # images of 14 x 14 patches and a class
    ],
)
def test_a_sequence_is_as_long_as_the_model_takes(plan: Any, config: dict[str, Any], tokens: str, work: str):
    shown = plan(config, "--tokens", tokens)
    assert shown.code == 0, shown.err
    assert f"no limit, {work}" in shown.out


def test_short_sequences_are_taken_in_larger_micro_batches(plan: Any):
    short = plan(VIT, "--tokens", "1B", "--global-batch", "4k").out
    assert re.search(r"H100 .*micro-batch (32|64|128|256)\b", short)
    assert re.search(r"H100 .*micro-batch (1|2|4|8|16)\b", plan(LLAMA, "--tokens", "1B").out)


def test_an_image_of_unknown_patches_is_asked_about(plan: Any):
    odd = {**VIT, "patch_size": [16, 16]}
    assert "config.json does not say into how many patches an image is cut" in plan(odd, "--tokens", "197k").err
    assert "no limit, 1k samples" in plan(odd, "--tokens", "197k", "--sequence", "197").out


def test_sizes_and_words_are_read_as_in_a_job_file(plan: Any):
    shown = plan(LLAMA, "--tokens", "4M", "--sequence", "4k", "--global-batch", "1k", "--adapter", "LoRA")
    assert shown.code == 0, shown.err
    assert "4M tokens in 1k sequences" in shown.out
    assert ", lora" in shown.out
    assert plan(LLAMA, "--tokens", "4M", "--sequence", "0.5").err.strip() == (
        "mlcd: Invalid value for '--sequence': '0.5': expected a whole number, such as 256; see mlcd plan --help"
    )


def test_a_job_is_called_after_its_model(plan: Any, tmp_path: Path):
    assert plan(LLAMA, "--tokens", "4M", name="llama-8b.json").out.startswith("llama-8b  ")
    assert plan(LLAMA, "--tokens", "4M", name="config.json").out.startswith(f"{tmp_path.name}  ")


def test_a_size_that_is_no_number_is_named(plan: Any):
    asked = plan({**LLAMA, "hidden_size": "512 wide"}, "--tokens", "4M")
    assert asked.code == 2
    assert asked.err.strip().endswith("model.json: hidden_size '512 wide': expected a number")


def test_a_path_of_a_config_that_is_missing_is_no_model_of_the_hub(mlcd: Any):
    asked = mlcd("plan", "--model", "llama/config.json", "--tokens", "4M")
    assert asked.code == 2
    assert "llama/config.json: no such file" in asked.err
    assert "hf download" not in asked.err


def test_a_model_of_the_hub_has_to_be_fetched_first(mlcd: Any):
    asked = mlcd("plan", "--model", "meta-llama/Llama-3.1-8B", "--tokens", "4M")
    assert asked.code == 2
    assert asked.err.strip() == (
        "mlcd: meta-llama/Llama-3.1-8B: no such file; if it is a model of the hub, fetch its config first: "
        "hf download meta-llama/Llama-3.1-8B config.json --local-dir ."
    )
