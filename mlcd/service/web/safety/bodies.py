"""Checks the body of a request: size, timeout, content type, and strict JSON.

Python's parser accepts more than the JSON standard: NaN, duplicate keys, half a surrogate pair. These are refused
here, so that no other code has to handle them.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import isfinite
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from mlcd.service.web.errors import Refusal

JSON, BYTES = "application/json", "application/octet-stream"
DEEPEST = 32
MOST_DIGITS = 40
LONGEST_S = 30.0  # timeout of a small body
UPLOADS = "/uploads"


def is_upload(request: Request) -> bool:
    """Whether the body is a file: its route reads it in chunks instead of holding it in memory."""
    return request.method == "POST" and request.url.path.endswith(UPLOADS)


async def whole_body(request: Request, most_kb: int) -> Receive:
    """Read a small body, check it, and return a `receive` that replays it."""
    check_size(request, most_kb << 10)
    async with arriving("body", LONGEST_S):
        body = b"".join([chunk async for chunk in limited_chunks(request, most_kb << 10)])
    if body:
        check_type(request, JSON)
        check_json(body)
    return _replay(body, request.receive)


@asynccontextmanager
async def arriving(what: str, seconds: float) -> AsyncIterator[None]:
    """While a body is read: refused if it takes longer than this, or ends too early."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Refusal(400, f"the {what} did not arrive within {seconds:.0f} s") from None
    except ClientDisconnect:
        raise Refusal(400, f"the {what} is cut short") from None


def check_size(request: Request, most: int) -> None:
    """Refuse by the request's headers, before a byte is read."""
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise Refusal(400, "Content-Length is not a number")
    if len(length) > 15 or int(length) > most:
        raise _too_large(most)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refusal(415, "compressed bodies are not supported; send it uncompressed")


def check_type(request: Request, expected: str) -> None:
    """Refuse other content types than this; a form of another site cannot set it."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != expected:
        raise Refusal(415, f"the body must be {expected}")


async def limited_chunks(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body's chunks as they arrive; refused as soon as they exceed the limit."""
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > most:
            raise _too_large(most)
        yield chunk


def check_json(body: bytes) -> None:
    """Refuse what is not strict JSON, or nested too deeply."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constants,
            parse_float=_finite,
            parse_int=_short,
        )
    except (ValueError, RecursionError) as error:  # also: not UTF-8
        why = error.args[0] if type(error) is ValueError and error.args else "it cannot be parsed"
        raise Refusal(400, f"the body is not JSON: {why}") from None
    level = [value]
    for _ in range(DEEPEST):
        for each in level:
            if isinstance(each, str):
                check_text(each)
        level = [inner for each in level for inner in _children(each)]
        if not level:
            return
    raise Refusal(400, f"the body is nested deeper than {DEEPEST} levels")


def check_text(text: str) -> None:
    """Refuse characters that databases and files cannot store: NUL, and lone surrogates."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Refusal(400, "text that contains NUL or a lone surrogate cannot be stored")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("a key occurs twice")
    return unique


def _no_constants(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _short(word: str) -> int:
    if len(word) > MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(word)


def _finite(word: str) -> float:
    if not isfinite(number := float(word)):
        raise ValueError("a number is too large")
    return number


def _too_large(most: int) -> Refusal:
    size = f"{most >> 20} MB" if most >= 1 << 20 else f"{most >> 10} KB"
    # the rest of the body is not read, so the connection cannot be reused
    return Refusal(413, f"the body is larger than {size}", {"Connection": "close"})


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body once, and after that the connection's own messages."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
