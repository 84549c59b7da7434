"""Secrets of members: tokens and sessions. Only their hashes are stored.

A plain SHA-256 is enough. Slow, salted hashes protect passwords, which people choose and others can guess; these are
256 random bits from the operating system.
"""

from __future__ import annotations

import hashlib
import re
import secrets

PREFIX = "mlcd_"
"""Makes a token recognizable, to people and to tools that search for leaked ones."""
_BYTES = 32
_SHAPE = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{16,}}")


def new_secret() -> str:
    """A new secret: `mlcd_` and 43 letters, digits, - and _."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def hashed(secret: str) -> str:
    """The hash that is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def without_secrets(text: str) -> str:
    """The text with anything that looks like one of our secrets masked."""
    return _SHAPE.sub(f"{PREFIX}***", text)
