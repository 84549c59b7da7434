"""The pieces of a streamed answer, and what they tell of it.

Times are those at which pieces were read. Tokens are the server's own count (`usage`), checked against the stream: a
piece may hold several tokens, but there are never more pieces than tokens, nor more than was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mlcd.clouds.load.generate import RequestFailed
from mlcd.planners.serve.llm.nouns import Stream

_decode = json.JSONDecoder().decode
"""Twice as fast as json.loads on bytes."""
CONTENT = ("content", "text", "reasoning_content", "reasoning", "tool_calls")
"""Where a piece of a stream may have its content."""


@dataclass
class StreamChunks:
    """The pieces of one answer, as they come. `times_s`: of those with content."""

    times_s: list[float] = field(default_factory=list)
    end_s: float = 0.0
    usage: Mapping[str, Any] | None = None
    ended: bool = False
    events: int = 0

    def on_event(self, data: bytes, now_s: float) -> None:
        """Take in an event of the stream."""
        self.events += 1
        if data == b"[DONE]":
            self.ended = True
            return
        try:
            self.add(_decode(data.decode()), now_s)
        except RequestFailed:
            raise
        except (ValueError, RecursionError):
            raise RequestFailed(f"the stream has a piece that is not JSON: {_shown(data)}") from None
        except (AttributeError, KeyError, IndexError, TypeError):
            raise RequestFailed(f"the stream has a piece that is none of a completion: {_shown(data)}") from None

    def add(self, piece: dict[str, Any], now_s: float) -> None:
        """Take in a piece."""
        if piece.get("error"):
            raise RequestFailed(f"the server broke the stream off: {error_text(piece)}")
        if usage := piece.get("usage"):
            self.usage = usage
        if not (choices := piece["choices"]):
            return
        choice = choices[0]
        delta = choice.get("delta") or choice
        if any(map(delta.get, CONTENT)):
            self.times_s.append(now_s)
            self.end_s = now_s
        if choice.get("finish_reason"):
            self.ended, self.end_s = True, now_s

    def stream(self, sent_s: float, most_tokens: int) -> Stream:
        """The whole answer to a request for so many tokens; RequestFailed if it is not whole or does not add up."""
        if self.events == 0:
            raise RequestFailed("the answer is not a stream of server-sent events")
        if not self.ended:
            raise RequestFailed("the stream ended early: it has neither a finish_reason nor [DONE]")
        if not self.times_s:
            raise RequestFailed("the answer has no content")
        tokens, input_tokens = self._count("completion_tokens"), self._count("prompt_tokens")
        if len(self.times_s) > tokens:
            raise RequestFailed(f"the server counts {tokens} tokens, but streamed {len(self.times_s)} pieces of text")
        if tokens > most_tokens:
            raise RequestFailed(f"the server counts {tokens} tokens, but was asked for {most_tokens} at most")
        gaps_s = tuple(after - before for before, after in pairwise(self.times_s))
        return Stream(self.times_s[0] - sent_s, self.end_s - sent_s, tokens, gaps_s, input_tokens)

    def _count(self, name: str) -> int:
        count = (self.usage or {}).get(name)
        if not isinstance(count, int):
            raise RequestFailed(f"the stream does not say its usage ({name}), which was asked for: tokens are unknown")
        return count


def error_text(answer: bytes | Mapping[str, Any]) -> str:
    """What an error says: its message where it is one of OpenAI's, vLLM's or FastAPI's, otherwise all of it."""
    try:
        document = json.loads(answer) if isinstance(answer, bytes) else answer
        error = document.get("error") or document
        return str(error if isinstance(error, str) else error.get("message") or error.get("detail") or error)
    except (ValueError, AttributeError, RecursionError):
        return answer[:300].decode(errors="replace") if isinstance(answer, bytes) else str(answer)


def _shown(data: bytes) -> str:
    return repr(data[:60].decode(errors="replace"))
