"""The requests of a load test of a language model: their lengths and texts.

Lengths are fixed, log-normal around a mean, from a trace, or from the user's own prompts. Texts are random, so that a
server's prefix cache finds only the prefix that they are meant to share.

A prompt's length is exact if the server accepts token ids, or a local tokenizer counts them. Otherwise it consists of
words; the server's counts for two prompts show how many tokens a word has, and how many the chat template adds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.clouds.load.generate import BLOCK
from mlcd.core.errors import UserError
from mlcd.planners.serve.llm.nouns import Prompts

Lengths = Iterator[tuple[int, int]]
"""Input and output tokens of each request."""
_COMMON = (
    "time year people way day man thing woman life child world school state family student group country problem hand"
    " part place case week company system program question work government number night point home water room mother"
    " area money story fact month lot right study book eye job word business issue side kind head house service friend"
    " father power hour game line end member law car city community name president team minute idea body information"
    " back parent face others level office door health person art war history party result change morning reason"
)
WORDS = tuple(_COMMON.split())
"""Common English words, which are a single token in most tokenizers."""
FIRST_TOKEN, FEWEST_TOKENS = 16, 512
"""Lower token ids are often special; a vocabulary of unknown size is assumed to have FEWEST_TOKENS."""


Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]
"""A text, token ids, or the messages of a chat."""
PromptWriter = Callable[[int, int, int], Prompt]
"""(tokens, shared, seed) -> prompt: the first `shared` tokens are equal in all prompts, the rest depends on seed."""


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A prompt, and the most tokens that its answer may have."""

    prompt: Prompt
    output_tokens: int

    def as_chat_or_text(self, chat: bool) -> dict[str, Any]:
        """The request's field with the prompt: `messages` or `prompt`."""
        prompt = self.prompt
        messages = not isinstance(prompt, str) and bool(prompt) and isinstance(prompt[0], Mapping)
        if chat:
            return {"messages": prompt if messages else [{"role": "user", "content": prompt}]}
        if messages:
            return {"prompt": "\n".join(str(each.get("content", "")) for each in prompt if isinstance(each, Mapping))}
        return {"prompt": prompt}


def random_requests(
    write: PromptWriter, lengths: Lengths, shared_prefix: int = 0, seed: int = 0
) -> Iterator[PromptRequest]:
    """Requests of these lengths with distinct random prompts."""
    for (input_tokens, output_tokens), number in zip(lengths, count(seed << 32), strict=False):
        yield PromptRequest(write(input_tokens, min(shared_prefix, input_tokens), number), output_tokens)


def lengths_of(prompts: Prompts, seed: int = 0) -> Lengths:
    """An endless iterator of request lengths."""
    rng = np.random.default_rng(seed)
    sigma = math.sqrt(math.log1p(prompts.spread**2))
    means = np.array([prompts.input_tokens, prompts.output_tokens], dtype=float)
    while True:
        drawn = means * np.exp(sigma * rng.standard_normal((BLOCK, 2)) - sigma**2 / 2)
        for input_tokens, output_tokens in np.maximum(1, np.rint(drawn)).astype(int).tolist():
            yield max(input_tokens, prompts.shared_prefix), output_tokens


POOL = 65_536
"""Size of the pool of random items from which prompts are cut: drawing each anew would take longer than sending it."""


@lru_cache(maxsize=8)
def _pool(first: int, end: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(0).integers(first, end, POOL).tolist())


def _items(size: int, shared: int, seed: int, first: int, end: int) -> tuple[int, ...]:
    """`size` numbers in [first, end): first `shared` common ones, then a few that encode the seed, then pool items."""
    pool, own = _pool(first, end), list[int]()
    number = seed % (1 << 62)
    while len(own) < size - shared and number:
        number, digit = divmod(number, end - first)
        own.append(first + digit)
    start, left = seed * 7_919 % POOL, max(0, size - shared - len(own))
    cut = pool[start : start + left]
    while len(cut) < left:
        cut += pool[: left - len(cut)]
    common = (pool * (1 + shared // POOL))[:shared] if shared else ()
    return (*common, *own, *cut)


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Writes prompts as random token ids of a vocabulary."""

    vocab: int = FEWEST_TOKENS

    def __call__(self, tokens: int, shared: int, seed: int) -> Prompt:
        """Random tokens."""
        return _items(tokens, shared, seed, FIRST_TOKEN if self.vocab > 2 * FIRST_TOKEN else 0, self.vocab)


@dataclass(frozen=True, slots=True)
class Words:
    """Writes prompts as random words. `added`: tokens that the server adds to each prompt."""

    tokens_per_word: float = 1.0
    added: float = 0.0

    def __call__(self, tokens: int, shared: int, seed: int) -> Prompt:
        """Random words."""
        words = max(1, round((tokens - self.added) / self.tokens_per_word))
        return self.text(words, min(words, round(shared / self.tokens_per_word)), seed)

    def text(self, words: int, shared: int, seed: int) -> str:
        """A text with this many words."""
        return " ".join(map(WORDS.__getitem__, _items(words, shared, seed, 0, len(WORDS))))

    def calibrated(self, words: Sequence[int], tokens: Sequence[int]) -> Words:
        """Calibrated by two prompts: their numbers of words, and the tokens that the server counted."""
        if tokens[1] <= tokens[0]:
            raise ValueError("the server's token count does not grow with the length of the prompt")
        slope = (tokens[1] - tokens[0]) / (words[1] - words[0])
        return replace(self, tokens_per_word=slope, added=tokens[0] - slope * words[0])


@dataclass(frozen=True, slots=True)
class CountedWords:
    """Writes prompts as words counted by a local tokenizer, so that the number of tokens is exact."""

    words: Words
    tokens_of: Callable[[str], int]

    def __call__(self, tokens: int, shared: int, seed: int) -> Prompt:
        """Random words, added or removed until the number of tokens is right."""
        wanted = max(1, tokens - round(self.words.added))
        number = max(1, round(wanted / self.words.tokens_per_word))
        tried: dict[int, int] = {}
        while number not in tried and number > 0:
            tried[number] = self.tokens_of(self.words.text(number, min(number, shared), seed))
            missing = wanted - tried[number]
            number += round(missing / self.words.tokens_per_word) or (missing > 0) - (missing < 0)
        nearest = min(tried, key=lambda each: abs(tried[each] - wanted))
        return self.words.text(nearest, min(nearest, shared), seed)


def local_tokenizer(path: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text. UserError if there is no such tokenizer."""
    file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise UserError(f"tokenizer '{path}': there is no file {file}")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UserError(f"tokenizer '{path}': install the package that reads it: pip install tokenizers") from None
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # it raises nothing more specific
        raise UserError(f"tokenizer '{path}': {' '.join(str(error).split())[:200]}") from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def from_file(prompts: Prompts) -> Iterator[PromptRequest]:
    """The user's own prompts, repeated without end. UserError if the file cannot be used."""
    path = Path(prompts.file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or 'is not text in UTF-8'}") from None
    found = [_ask(document, where, prompts.output_tokens) for document, where in _documents(text, path)]
    if not found:
        raise UserError(f"{path}: it has no prompt")
    return cycle(found)


def _documents(text: str, path: Path) -> Iterator[tuple[Any, str]]:
    """The lines of a JSON Lines file, or the items of a JSON list, each with its position for messages."""
    if text.lstrip().startswith("["):
        try:
            yield from ((each, f"{path}: item {number}") for number, each in enumerate(json.loads(text), start=1))
        except ValueError as error:
            raise UserError(f"{path}: not JSON: {error}") from None
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line), f"{path}:{number}"
            except ValueError:
                raise UserError(f"{path}:{number}: not JSON: expected one object a line") from None


def _ask(document: Any, where: str, output_tokens: int) -> PromptRequest:
    """A request of the file: its prompt, its messages, or the first turn of a ShareGPT conversation."""
    fields = document if isinstance(document, dict) else {}
    prompt = fields.get("prompt") or fields.get("messages")
    if prompt is None and (turns := fields.get("conversations")):
        prompt = next((turn.get("value") for turn in turns if isinstance(turn, dict)), None)
    if prompt is None or not (isinstance(prompt, str) or _is_list_of(prompt, int) or _is_list_of(prompt, dict)):
        raise UserError(f"{where}: expected a 'prompt' (text or token ids) or 'messages' (of a chat)")
    tokens = fields.get("output_tokens", output_tokens)
    if not isinstance(tokens, int) or tokens < 1:
        raise UserError(f"{where}: output_tokens: expected a whole number of at least 1, not {tokens!r}")
    return PromptRequest(prompt, tokens)


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, kind) for each in value)
