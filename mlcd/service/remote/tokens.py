"""Tokens of servers that this user has signed in to, in a file that only this user can read."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from mlcd.core.errors import UserError

API = "/api/v1"


@dataclass(frozen=True)
class Tokens:
    """The file: an address and a token each. A token goes to its own server and nowhere else."""

    path: Path

    def get(self, url: str) -> str | None:
        """The token for this server, if there is one."""
        return self._read().get(address(url))

    def keep(self, url: str, token: str) -> None:
        """Keep a token, in place of an earlier one."""
        self._write({**self._read(), address(url): checked(token, "the token")})

    def forget(self, url: str) -> bool:
        """Forget the token of this server; whether there was one."""
        kept = self._read()
        found = kept.pop(address(url), None)
        if found is not None:
            self._write(kept)
        return found is not None

    def _read(self) -> dict[str, str]:
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            kept = None
        if not isinstance(kept, dict) or not all(isinstance(token, str) for token in kept.values()):
            raise UserError(f"{self.path}: damaged; delete it, and sign in again with: mlcd login URL")
        return kept

    def _write(self, kept: dict[str, str]) -> None:
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Made with its mode: there is no moment in which somebody else could open it.
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(kept, file, indent=2)
            partial.replace(self.path)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from None


def address(url: str) -> str:
    """A server's address as we write it: 'https://mlcd.example:8421', without a slash or its API's path at its end."""
    from urllib.parse import urlsplit

    told = f"server '{url}': expected an address, such as http://localhost:8421"
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise UserError(told) from None
    if parts.username or parts.password:
        raise UserError(
            "the server's address has a user or a password in it; take it out, and sign in with: mlcd login URL"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UserError(told)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path
    while path.endswith(("/", API)):
        path = path.removesuffix("/").removesuffix(API)
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{path}"


def checked(token: str, where: str) -> str:
    """A token that can be sent; what it is, is not repeated."""
    token = token.strip()
    if not re.fullmatch(r"[!-~]{8,200}", token):
        raise UserError(f"{where} is not one of MLCD's: those begin with mlcd_ and are a single word")
    return token
