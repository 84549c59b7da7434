"""The blocks of a file of knobs for language models."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcd.core.errors import JobFileError
from mlcd.planners.serve.llm.blocks import parse_sweep, prompts_of
from mlcd.planners.serve.llm.nouns import Engine
from mlcd.planners.serve.space import endpoint_table, parse_knobs

FILE = """
knobs: {threads: [1, 2], precision: [bf16, fp32]}
price: {threads: 0.04}
engine: {name: vllm, command: "my-vllm serve {model} --port {port}", startup: 10m}
prompts: {input_tokens: 256, spread: 0.3, chat: false}
sweep: [16, 1, 4]
trial: 2m
"""


def test_engine_prompts_and_sweep_are_read():
    read = parse_knobs(FILE, Path("k.yaml"))
    assert read.engine == Engine("vllm", "my-vllm serve {model} --port {port}", startup_s=600.0)
    assert read.sweep == (1, 4, 16)
    assert read.trial_s == 120.0
    prompts = prompts_of({"output_tokens": 64, "input_tokens": None}, read.prompts)
    assert (prompts.input_tokens, prompts.output_tokens, prompts.spread, prompts.chat) == (256, 64, 0.3, False)


def test_an_engine_that_runs_already_has_a_price_and_no_knobs():
    read = parse_knobs("engine: {url: 'http://h:1'}\nprice: {base: 2.5}", Path("k.yaml"))
    assert read.table == endpoint_table("http://h:1", 2.5)


@pytest.mark.parametrize("written, steps", [("1,8,4", (1, 4, 8)), ("1..8", (1, 2, 4, 8)), ([2, 1], (1, 2)), (4, (4,))])
def test_a_sweep_is_a_list_or_a_doubling_range(written, steps):
    assert parse_sweep(written) == steps


@pytest.mark.parametrize(
    "text, words",
    [
        ("engine: vllm", "engine: expected `name:`"),
        ("engine: {names: vllm}", "unknown key 'names': did you mean 'name'"),
        ("engine: {version: 1}", "engine: needs a `name:`"),
        ("engine: {command: serve it}", "the command has no {port}"),
        ("engine: {name: vllm, startup: 5}", "startup '5'"),
        ("prompts: {input_tokens: 0}", "input_tokens '0'"),
        ("prompts: {spread: -1}", "spread '-1'"),
        ("prompts: {chat: 1}", "chat '1'"),
        ("sweep: 0,2", "expected concurrent requests"),
        ("engine: {url: 'http://h:1'}\nknobs: {tp: [1]}", "cannot be configured"),
        ("engine: {url: 'http://h:1'}", "`price:` is missing"),
    ],
)
def test_what_is_wrong_in_a_block_is_one_line_with_its_place(text, words):
    if "url" not in text:
        text = f"knobs: {{tp: [1]}}\nprice: {{base: 1}}\n{text}"
    with pytest.raises(JobFileError) as wrong:
        parse_knobs(text, Path("k.yaml"))
    assert words in str(wrong.value)
    assert str(wrong.value).startswith("k.yaml:")
    assert "\n" not in str(wrong.value)
