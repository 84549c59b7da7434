"""Secrets that name a member: tokens and sessions. Only their hashes are kept.

A plain SHA-256 is enough here, and a slow, salted hash would only cost time: those protect passwords, which people
choose and others guess. Ours are 256 bits from the operating system. Nobody can try so many, and no two are alike.
"""

from __future__ import annotations

import hashlib
import re
import secrets

PREFIX = "mlcd_"
"""Makes a token known for what it is, to people and to the tools that look for leaked ones."""
_BYTES = 32
_SHAPE = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{16,}}")


def new_secret() -> str:
    """A new one: `mlcd_` and 43 letters, digits, - and _."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def hashed(secret: str) -> str:
    """What is kept of it. Any text has a hash, also one that is no secret of ours."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def without_secrets(text: str) -> str:
    """The text with anything that looks like a secret of ours blotted out."""
    return _SHAPE.sub(f"{PREFIX}***", text)
