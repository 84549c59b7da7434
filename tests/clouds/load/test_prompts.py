"""Prompts have the requested lengths, share the requested prefix, and nothing else."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.load.prompts import (
    CountedWords,
    PromptRequest,
    TokenIds,
    Words,
    from_file,
    lengths_of,
    local_tokenizer,
    random_requests,
)
from mlcd.core.errors import UserError
from mlcd.planners.serve.llm.nouns import Prompts


@given(st.integers(1, 3_000), st.integers(0, 300), st.integers(0, 2**40), st.integers(8, 200_000))
def test_prompts_have_their_length_and_share_their_prefix_only(size: int, shared: int, seed: int, vocab: int) -> None:
    shared = min(shared, size)
    ids = [TokenIds(vocab)(size, shared, each) for each in (seed, seed + 1)]
    texts = [str(Words()(size, shared, each)).split() for each in (seed, seed + 1)]
    for first, second in (ids, texts):
        assert len(first) == len(second) == size
        assert list(first[:shared]) == list(second[:shared])
        if size - shared >= 4:  # within the first tokens: a cache of blocks finds nothing else in common
            assert list(first[shared : shared + 16]) != list(second[shared : shared + 16])
    assert all(0 <= token < vocab for prompt in ids for token in prompt if isinstance(token, int))


def test_lengths_are_fixed_or_spread_around_their_mean() -> None:
    assert set(islice(lengths_of(Prompts(100, 20)), 50)) == {(100, 20)}
    drawn = np.array(list(islice(lengths_of(Prompts(500, 100, spread=0.5), seed=1), 20_000)), dtype=float)
    assert drawn.mean(axis=0) == pytest.approx([500, 100], rel=0.02)
    assert drawn.std(axis=0) / drawn.mean(axis=0) == pytest.approx([0.5, 0.5], rel=0.05)
    assert drawn.min() >= 1
    again = list(islice(lengths_of(Prompts(500, 100, spread=0.5), seed=1), 10))
    assert again == [tuple(each) for each in drawn[:10].astype(int).tolist()]


def test_requests_of_another_seed_are_others() -> None:
    first, second = (next(random_requests(Words(), iter([(30, 5)]), seed=seed)) for seed in (1, 2))
    assert first != second
    assert first.output_tokens == 5


def test_words_are_calibrated_by_two_counts_of_a_server() -> None:
    """1.5 tokens a word, and 7 of the template."""
    words = Words().calibrated((16, 144), (31, 223))
    assert len(str(words(307, 0, 1)).split()) == 200
    with pytest.raises(ValueError, match="does not grow"):
        Words().calibrated((16, 144), (5, 5))


def test_a_local_tokenizer_makes_the_count_exact() -> None:
    def tokens_of(text: str) -> int:
        return sum(2 if len(word) > 4 else 1 for word in text.split())

    write = CountedWords(Words(1.4, 5.0), tokens_of)
    counts = [tokens_of(str(write(100, 10, seed))) for seed in range(50)]
    assert all(abs(each - 95) <= 1 for each in counts)
    assert counts.count(95) > 25


@pytest.mark.parametrize(("name", "text"), [("missing", None), ("folder", None), ("broken.json", "{")])
def test_a_tokenizer_that_cannot_be_used_is_one_line(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif text is not None:
        path.write_text(text)
    with pytest.raises(UserError) as error:
        local_tokenizer(str(path))
    assert str(error.value).startswith(f"tokenizer '{path}': ")
    assert "\n" not in str(error.value)


def test_a_users_own_prompts_are_sent_over_and_over(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]
    messages = [{"role": "user", "content": "b"}]
    lines = [{"prompt": "a", "output_tokens": 3}, {"messages": messages}, {"conversations": turns}, {"prompt": [5, 6]}]
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    expected = [
        PromptRequest("a", 3),
        PromptRequest(messages, 9),
        PromptRequest("hello", 9),
        PromptRequest([5, 6], 9),
        PromptRequest("a", 3),
    ]
    assert list(islice(from_file(Prompts(output_tokens=9, file=str(path))), 5)) == expected
    path.write_text(json.dumps(lines))
    assert list(islice(from_file(Prompts(output_tokens=9, file=str(path))), 5)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no prompt"),
        ('{"prompt": "a"}\n{oops', ":2: not JSON"),
        ("[1", "not JSON"),
        ("[1]", "item 1: expected a 'prompt'"),
        ('{"text": "a"}', ":1: expected a 'prompt'"),
        ('{"prompt": ["a"]}', ":1: expected a 'prompt'"),
        ('{"prompt": "a", "output_tokens": 0}', ":1: output_tokens: expected a whole number of at least 1, not 0"),
    ],
)
def test_a_file_of_prompts_that_cannot_be_used_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        from_file(Prompts(file=str(path)))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_of_prompts_that_is_not_there_is_one_line() -> None:
    with pytest.raises(UserError, match=r"none\.jsonl: No such file"):
        from_file(Prompts(file="none.jsonl"))
