"""The body of a request: as large as allowed, in time, of a type that is read here, and JSON as the standard has it.

Python's parser takes more than JSON is: NaN, a key twice, half a character. None of that is let through to anybody
who would have to think of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from math import isfinite
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from mlcd.service.web.failures import Refusal

JSON, BYTES = "application/json", "application/octet-stream"
DEEPEST = 32
MOST_DIGITS = 40
LONGEST_S = 30.0
"""From a small body's first byte to its last."""
UPLOADS = "/uploads"


def is_upload(request: Request) -> bool:
    """Whose body is a file: it is not held in memory, its route counts it."""
    return request.method == "POST" and request.url.path.endswith(UPLOADS)


async def whole_body(request: Request, most_kb: int) -> Receive:
    """Read a small body to its end, check it, and hand it on."""
    check_size(request, most_kb << 10)
    try:
        async with asyncio.timeout(LONGEST_S):
            body = b"".join([chunk async for chunk in counted(request, most_kb << 10)])
    except TimeoutError:
        raise Refusal(400, f"the body did not come within {LONGEST_S:.0f} s") from None
    except ClientDisconnect:
        raise Refusal(400, "the body is cut short") from None
    if body:
        check_type(request, JSON)
        check_json(body)
    return _again(body, request.receive)


def check_size(request: Request, most: int) -> None:
    """Refuse by what the request says of itself, before a byte is read."""
    told = request.headers.get("content-length", "0")
    if not told.isascii() or not told.isdigit():
        raise Refusal(400, "Content-Length is no number")
    if len(told) > 15 or int(told) > most:
        raise _too_large(most)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refusal(415, "compressed bodies are not read here; send it as it is")


def check_type(request: Request, wanted: str) -> None:
    """Refuse what is not said to be of this type; a form of another site cannot say so."""
    told = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if told != wanted:
        raise Refusal(415, f"the body must be {wanted}")


async def counted(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body's bytes as they come, refused at the first one too many."""
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > most:
            raise _too_large(most)
        yield chunk


def check_json(body: bytes) -> None:
    """Refuse what is not strictly JSON, or deeper than anybody nests."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_no_number,
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
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise Refusal(400, f"the body is nested deeper than {DEEPEST} levels")


def check_text(text: str) -> None:
    """Refuse characters that no database or file keeps: NUL, and halves of surrogate pairs."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Refusal(400, "text with a NUL or half a character in it cannot be kept")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is written twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _short(word: str) -> int:
    if len(word) > MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(word)


def _finite(word: str) -> float:
    if not isfinite(number := float(word)):
        raise ValueError("a number is too large")
    return number


def _too_large(most: int) -> Refusal:
    told = f"{most >> 20} MB" if most >= 1 << 20 else f"{most >> 10} KB"
    # what is left of the body is not read: the connection is of no use after this
    return Refusal(413, f"the body is larger than {told}", {"Connection": "close"})


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read again; afterwards what the connection says: that it is closed."""
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
