"""The user's tokens of servers, in a file that only this user can read."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mlcd.core.errors import UserError

API = "/api/v1"


@dataclass(frozen=True)
class Tokens:
    """The file: a token for each address. A token is sent only to its own server."""

    path: Path

    def get(self, url: str) -> str | None:
        """The token for this server, if there is one."""
        return self._read().get(address(url))

    def keep(self, url: str, token: str) -> None:
        """Store a token, replacing an earlier one."""
        self._write({**self._read(), address(url): checked(token, "the token")})

    def forget(self, url: str) -> bool:
        """Delete the token of this server; return whether there was one."""
        tokens = self._read()
        token = tokens.pop(address(url), None)
        if token is not None:
            self._write(tokens)
        return token is not None

    def _read(self) -> dict[str, str]:
        try:
            tokens = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            tokens = None
        if not isinstance(tokens, dict) or not all(isinstance(token, str) for token in tokens.values()):
            raise UserError(f"{self.path}: damaged; delete it, and sign in again with: mlcd login URL")
        return tokens

    def _write(self, tokens: dict[str, str]) -> None:
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Created with its mode, so that nobody else can open it at any moment.
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(tokens, file, indent=2)
            partial.replace(self.path)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from None


def address(url: str) -> str:
    """A server's address in normal form: 'https://mlcd.example:8421', without a final slash or the API's path."""
    message = f"server '{url}': expected an address, such as http://localhost:8421"
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise UserError(message) from None
    if parts.username or parts.password:
        raise UserError("the server's address has a user or a password in it; take it out, and use: mlcd login URL")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UserError(message)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path
    while path.endswith(("/", API)):
        path = path.removesuffix("/").removesuffix(API)
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{path}"


def checked(token: str, where: str) -> str:
    """The token, if it can be sent; the error message does not repeat it."""
    token = token.strip()
    if not re.fullmatch(r"[!-~]{8,200}", token):
        raise UserError(f"{where} is not an MLCD token: those begin with mlcd_ and are a single word")
    return token
